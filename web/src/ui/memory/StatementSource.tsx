import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/**
 * Show the source of a memory: its author, its time, the chats it comes from, and the project in which it
 * applies.
 */
export function StatementSource({ memory, showProject }: { memory: MemoryDoc; showProject: boolean }) {
  const { source, createdAt, sessionIds, projectId } = memory;
  const byAssistant = source === "extracted";
  const sessions = useRows("sessions", { selector: { id: { $in: sessionIds } } });
  const project = useRows("projects", { selector: { id: projectId ?? "" } })?.[0];
  return (
    <Text size="sm" c="dimmed">
      {t(byAssistant ? "memory.notedByAssistant" : "memory.addedByYou", { date: date(createdAt) })}
      {sessions?.map(({ id, title }, index) => (
        <span key={id}>
          {index === 0 ? `, ${t("memory.inChat")} ` : ", "}
          <Anchor component={Link} href={`/s/${id}`} dir="auto" inherit underline="always">
            {title}
          </Anchor>
        </span>
      ))}
      {byAssistant && sessions?.length === 0 && `, ${t("memory.chatDeleted")}`}
      {showProject &&
        ` · ${projectId ? t("memory.inProject", { name: project?.name ?? "…" }) : t("memory.inNoProject")}`}
    </Text>
  );
}
