import { Button, Group, Text } from "@mantine/core";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { Selection } from "./useSelection.ts";
import { t } from "../../locale/t.ts";

interface SelectionBarProps {
  shown: readonly DocumentDoc[];
  selection: Selection;
  onDelete: (ids: string[]) => void;
}

/** Show the number of listed documents or, with a selection, of selected documents, and actions on the selection. */
export function SelectionBar({ shown, selection, onDelete }: SelectionBarProps) {
  const { ids } = selection;
  return (
    <Group gap="xs" mih={44} justify="space-between">
      <Text size="sm" c="dimmed" role="status">
        {ids.length > 0
          ? t("documents.selected", { n: ids.length })
          : t("documents.count", { n: shown.length })}
      </Text>
      <Group gap="xs">
        {ids.length < shown.length && (
          <Button variant="subtle" size="sm" onClick={() => selection.set(shown.map(({ id }) => id))}>
            {t("documents.selectAll")}
          </Button>
        )}
        {ids.length > 0 && (
          <>
            <Button variant="subtle" size="sm" onClick={() => selection.set([])}>
              {t("documents.selectNone")}
            </Button>
            <Button variant="light" color="red" size="sm" onClick={() => onDelete(ids)}>
              {t("common.delete")}
            </Button>
          </>
        )}
      </Group>
    </Group>
  );
}
