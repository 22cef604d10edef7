import { Text } from "@mantine/core";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { CHATS, TextWithChats } from "../components/TextWithChats.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Show the source of a memory: who added it, when, and links to its chats. `showProject` adds its project. */
export function StatementSource({ memory, showProject }: { memory: MemoryDoc; showProject: boolean }) {
  const { sessionIds, projectId } = memory;
  const sessions = useRows("sessions", { selector: { id: { $in: sessionIds } } });
  const project = useRows("projects", { selector: { id: projectId ?? "" } })?.[0];
  return (
    <Text size="sm" c="dimmed">
      <TextWithChats text={sourceText(memory, sessions?.length)} chats={sessions ?? []} />
      {showProject &&
        ` · ${projectId ? t("memory.inProject", { name: project?.name ?? "…" }) : t("memory.inNoProject")}`}
    </Text>
  );
}

/** Return the text for a memory with `chats` existing chats. `chats` is undefined until they are loaded. */
function sourceText({ source, createdAt }: MemoryDoc, chats: number | undefined): string {
  const day = date(createdAt);
  if (source === "user")
    return chats
      ? t("memory.addedByYouInChats", { date: day, chats: CHATS })
      : t("memory.addedByYou", { date: day });
  if (chats === 0) return t("memory.notedFromDeletedChat", { date: day });
  return chats
    ? t("memory.notedFromChats", { date: day, chats: CHATS })
    : t("memory.notedByAssistant", { date: day });
}
