import { Radio, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { useUndoableDelete } from "../useUndoableDelete.tsx";
import { t } from "../../locale/t.ts";

/** Ask for confirmation before a project is deleted, and whether its chats are deleted, too. */
export function DeleteProject({ project, onClose }: { project: ProjectDoc; onClose: () => void }) {
  const { api } = useAccountApi();
  const deleteUndoably = useUndoableDelete();
  const { id, name } = project;
  const query = { selector: { projectId: id } };
  const [sessions, memories, names] = [
    useRows("sessions", query)?.length ?? 0,
    useRows("memories", query)?.length ?? 0,
    useRows("entities", query)?.length ?? 0,
  ];
  const [choice, setChoice] = useState("keep");
  const withSessions = choice === "delete";

  function confirm() {
    onClose();
    const message = t("projects.deleting", { name });
    const commit = () => api.deleteProject(id, withSessions);
    deleteUndoably({ id, message, path: location.pathname, redirect: "/projects", commit });
  }

  return (
    <ConfirmDialog
      opened
      title={t("projects.delete.title", { name })}
      cancel={t("common.cancel")}
      confirm={withSessions ? t("projects.delete.confirmAll") : t("projects.delete.confirm")}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Text size="sm">{t("projects.delete.effect", { memories, names })}</Text>
      {sessions === 0 ? (
        <Text size="sm">{t("projects.delete.othersStay")}</Text>
      ) : (
        <Radio.Group value={choice} onChange={setChoice} label={t("projects.delete.whatAboutChats")}>
          <Stack gap="xs" mt="xs">
            <Radio
              value="keep"
              label={t("projects.delete.keepChats", { n: sessions })}
              description={t("projects.delete.keepChatsHint")}
            />
            <Radio
              value="delete"
              label={t("projects.delete.deleteChats", { n: sessions })}
              description={t("projects.delete.deleteChatsHint")}
            />
          </Stack>
        </Radio.Group>
      )}
    </ConfirmDialog>
  );
}
