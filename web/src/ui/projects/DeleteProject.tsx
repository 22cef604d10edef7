/** Asks before a project goes: what goes with it, what stays, and whether its conversations do. */

import { Radio, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { ProjectDoc } from "../../core/schema/rows.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { useDesk, useRows } from "../../client/backendClient.tsx";
import { useUndoable } from "../useUndoable.tsx";
import { projects } from "../words/projects.ts";

const words = projects.deletion;

export function DeleteProject({ project, onClose }: { project: ProjectDoc; onClose: () => void }) {
  const { desk } = useDesk();
  const deleteSoon = useUndoable();
  const { id, name } = project;
  const query = { selector: { projectId: id } };
  const [sessions, statements, names] = [
    useRows("sessions", query)?.length ?? 0,
    useRows("memories", query)?.length ?? 0,
    useRows("entities", query)?.length ?? 0,
  ];
  const [choice, setChoice] = useState("keep");
  const withSessions = choice === "drop";

  function confirm() {
    onClose();
    const message = projects.deleting(name);
    const commit = () => desk.deleteProject(id, withSessions);
    deleteSoon({ id, message, address: location.pathname, away: "/projects", commit });
  }

  return (
    <ConfirmDialog
      opened
      title={words.title(name)}
      cancel={words.cancel}
      confirm={withSessions ? words.confirmAll : words.confirm}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Text size="sm">{words.goes(statements, names)}</Text>
      {sessions === 0 ? (
        <Text size="sm">{words.none}</Text>
      ) : (
        <Radio.Group value={choice} onChange={setChoice} label={words.stays}>
          <Stack gap="xs" mt="xs">
            <Radio value="keep" label={words.keep(sessions)} description={words.keepHint} />
            <Radio value="drop" label={words.drop(sessions)} description={words.dropHint} />
          </Stack>
        </Radio.Group>
      )}
    </ConfirmDialog>
  );
}
