import { Button, Group, NativeSelect } from "@mantine/core";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { RenameSession } from "./RenameSession.tsx";
import { t } from "../../locale/t.ts";
import { sessionTitle } from "../sessionTitle.ts";

interface Props {
  session: SessionDoc;
  mode: "menu" | "renaming";
  onRename(): void;
  onDelete(): void;
  onDone(): void;
}

/** Show the actions for a chat in the sidebar: rename, move to a project and delete. */
export default function SessionActions({ session, mode, onRename, onDelete, onDone }: Props) {
  if (mode === "renaming") return <RenameSession session={session} onDone={onDone} />;
  return (
    <Group gap="xs" px="sm" pb="xs" onKeyDown={({ key }) => key === "Escape" && onDone()}>
      <Button size="compact-sm" variant="light" onClick={onRename} autoFocus>
        {t("sidebar.rename")}
      </Button>
      <Button size="compact-sm" variant="light" color="red" onClick={onDelete}>
        {t("common.delete")}
      </Button>
      <MoveSession session={session} onDone={onDone} />
    </Group>
  );
}

function MoveSession({ session, onDone }: Pick<Props, "session" | "onDone">) {
  const { api } = useAccountApi();
  const projects = useRows("projects");
  if (!projects?.length) return null;

  async function move(projectId: string) {
    onDone();
    await api.memory.moveSession(session.id, projectId || null);
  }

  return (
    <NativeSelect
      size="xs"
      w="100%"
      label={t("sidebar.project")}
      aria-label={t("sidebar.projectOf", { title: sessionTitle(session) })}
      value={session.projectId ?? ""}
      onChange={(event) => void move(event.currentTarget.value)}
      data={[
        { value: "", label: t("sidebar.noProject") },
        ...projects
          .toSorted((a, b) => a.name.localeCompare(b.name))
          .map(({ id, name }) => ({ value: id, label: name })),
      ]}
    />
  );
}
