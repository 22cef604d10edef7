/** Asks before something that an agent did is deleted: there is no way back. */

import { Text } from "@mantine/core";
import { headOf, type Observation } from "../../core/agents/observations.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { agents } from "../words/agents.ts";

const words = agents.deletion;

interface Props {
  /** Undefined: nothing is asked. */
  step: Observation | undefined;
  onConfirm: (step: Observation) => void;
  onClose: () => void;
}

export function DeleteStepDialog({ step, onConfirm, onClose }: Props) {
  return (
    <ConfirmDialog
      opened={step !== undefined}
      title={words.title}
      cancel={words.cancel}
      confirm={words.confirm}
      onConfirm={() => step && onConfirm(step)}
      onClose={onClose}
    >
      <Text ff="monospace" size="sm" lineClamp={3} dir="auto">
        {step && headOf(step)}
      </Text>
      <Text size="sm">{words.goes}</Text>
    </ConfirmDialog>
  );
}
