import { Button, Group, Paper, Text } from "@mantine/core";
import { IconPinFilled } from "@tabler/icons-react";
import { useState } from "react";
import { freshnessLabel } from "../../core/memory/recency.ts";
import type { MemoryHistory } from "../../core/memory/memoryHistory.ts";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { useUndoableDelete } from "../useUndoableDelete.tsx";
import { afterSaving } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { EarlierVersions } from "./EarlierVersions.tsx";
import { StatementSource } from "./StatementSource.tsx";
import { StatementForm } from "./StatementForm.tsx";
import { since } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  remembered: MemoryHistory;
  now: number;
  showProject: boolean;
}

/** Show a memory with its source, age, earlier versions and actions. */
export function Statement({ remembered: { current, earlier }, now, showProject }: Props) {
  const { api } = useAccountApi();
  const [editing, setEditing] = useState(false);
  const [opened, setOpened] = useState(false);
  const { id, text, projectId = null } = current;

  const closeForm = () => setEditing(false);
  function save(changed: string) {
    if (changed === text) return closeForm();
    void afterSaving(api.memory.editMemory(id, changed), closeForm);
  }

  if (editing) {
    return (
      <li>
        <StatementForm text={text} where={projectId} onSave={save} onCancel={closeForm} />
      </li>
    );
  }
  return (
    <Paper component="li" withBorder p="sm" data-memory={id}>
      <ExpandableText text={text} />
      <StatementSource memory={current} showProject={showProject} />
      <Age memory={current} now={now} />
      <Group gap={4} justify="space-between" mt={4}>
        {earlier.length > 0 && (
          <Button
            size="compact-sm"
            variant="subtle"
            ms={-8}
            aria-expanded={opened}
            onClick={() => setOpened(!opened)}
          >
            {t("memory.earlier", { n: earlier.length })}
          </Button>
        )}
        <Actions memory={current} onEdit={() => setEditing(true)} />
      </Group>
      {opened && <EarlierVersions earlier={earlier} />}
    </Paper>
  );
}

function Age({ memory, now }: { memory: MemoryDoc; now: number }) {
  const state = freshnessLabel(memory, now);
  if (state === "pinned") {
    return (
      <Group gap={4}>
        <IconPinFilled size={14} aria-hidden />
        <Text size="sm">{t("memory.pinned")}</Text>
      </Group>
    );
  }
  return (
    <Text size="sm" c="dimmed">
      {t(`memory.fading.${state}`, { since: since(memory.updatedAt, now) })}
    </Text>
  );
}

function Actions({ memory: { id, text, pinned }, onEdit }: { memory: MemoryDoc; onEdit: () => void }) {
  const { api } = useAccountApi();
  const deleteUndoably = useUndoableDelete();
  const remove = () =>
    deleteUndoably({ id, message: t("memory.deletingMemory"), commit: () => api.memory.deleteMemory(id) });
  const actions: [string, () => unknown][] = [
    [pinned ? t("common.unpin") : t("common.pin"), () => api.memory.pinMemory(id, !pinned)],
    [t("common.edit"), onEdit],
    [t("common.delete"), remove],
  ];
  return (
    <Group gap={4} ms="auto">
      {actions.map(([verb, run]) => (
        <Button
          key={verb}
          size="compact-sm"
          variant="subtle"
          aria-label={t("common.actionOn", { action: verb, name: text })}
          onClick={() => void run()}
        >
          {verb}
        </Button>
      ))}
    </Group>
  );
}
