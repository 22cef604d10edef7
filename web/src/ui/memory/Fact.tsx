import { Badge, Button, Group, Paper, Text } from "@mantine/core";
import type { FactDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { afterSaving } from "../notify.ts";
import { useUndoableDelete } from "../useUndoableDelete.tsx";
import { FactForm } from "./FactForm.tsx";
import { useFactForm } from "./useFactForm.ts";
import { t } from "../../locale/t.ts";

/** Show a fact with its state, its source and buttons to confirm, edit and delete it. */
export function Fact({ fact, source }: { fact: FactDoc; source: string | undefined }) {
  const { api } = useAccountApi();
  const deleteUndoably = useUndoableDelete();
  const editing = useFactForm(fact.id);
  const { id, key, value, confirmed, confidence, sourceRemoved } = fact;

  const save = (key: string, value: string) =>
    void afterSaving(api.changeFact(id, { key, value, confirmed: true }), editing.close);

  const remove = () =>
    deleteUndoably({
      id,
      message: t("memory.deletingFact", { name: key }),
      commit: () => api.deleteRow("facts", id),
    });

  if (editing.isOpen) {
    return (
      <li>
        <FactForm fact={fact} onSave={save} onCancel={editing.close} />
      </li>
    );
  }
  return (
    <Paper component="li" withBorder p="sm">
      <Text size="sm" c="dimmed">
        {key}
      </Text>
      <ExpandableText text={value} />
      <Group gap="xs" mt={4}>
        {confirmed ? (
          <Badge variant="light">{t("memory.confirmed")}</Badge>
        ) : (
          <Badge variant="default">{t("memory.confidence", { confidence })}</Badge>
        )}
        {sourceRemoved && (
          <Badge variant="light" color="orange">
            {t("memory.sourceRemoved")}
          </Badge>
        )}
        {source && (
          <Text size="xs" c="dimmed">
            {t("memory.from", { name: source })}
          </Text>
        )}
        <Group gap={4} ms="auto">
          {!confirmed && (
            <Action
              verb={t("memory.confirm")}
              of={key}
              onClick={() => api.changeFact(id, { confirmed: true })}
            />
          )}
          <Action verb={t("common.edit")} of={key} onClick={editing.open} />
          <Action verb={t("common.delete")} of={key} onClick={remove} />
        </Group>
      </Group>
    </Paper>
  );
}

function Action({ verb, of, onClick }: { verb: string; of: string; onClick: () => unknown }) {
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      aria-label={t("common.actionOn", { action: verb, name: of })}
      onClick={() => void onClick()}
    >
      {verb}
    </Button>
  );
}
