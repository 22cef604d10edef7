import { Text } from "@mantine/core";
import { headingOf, type Observation } from "../../core/agents/observations.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { t } from "../../locale/t.ts";

interface Props {
  /** Step to delete. If undefined, the dialog is closed. */
  step: Observation | undefined;
  onConfirm: (step: Observation) => void;
  onClose: () => void;
}

/** Ask for confirmation before a step of an agent is deleted, because this cannot be undone. */
export function DeleteStepDialog({ step, onConfirm, onClose }: Props) {
  return (
    <ConfirmDialog
      opened={step !== undefined}
      title={t("agents.delete.title")}
      cancel={t("common.cancel")}
      confirm={t("common.delete")}
      onConfirm={() => step && onConfirm(step)}
      onClose={onClose}
    >
      <Text ff="monospace" size="sm" lineClamp={3} dir="auto">
        {step && headingOf(step)}
      </Text>
      <Text size="sm">{t("agents.delete.effect")}</Text>
    </ConfirmDialog>
  );
}
