/** Where a statement is from: by whom, when, in which conversation, and who sees it. */

import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

export function StatementSource({ memory, placed }: { memory: MemoryDoc; placed: boolean }) {
  const { source, createdAt, sessionIds, projectId } = memory;
  const byAssistant = source === "extracted";
  const sessions = useRows("sessions", { selector: { id: { $in: sessionIds } } });
  const project = useRows("projects", { selector: { id: projectId ?? "" } })?.[0];
  return (
    <Text size="sm" c="dimmed">
      {t(byAssistant ? "memory.byAssistant" : "memory.byYou", { date: date(createdAt) })}
      {sessions?.map(({ id, title }, at) => (
        <span key={id}>
          {at === 0 ? `, ${t("memory.inChat")} ` : ", "}
          <Anchor component={Link} href={`/s/${id}`} dir="auto" inherit underline="always">
            {title}
          </Anchor>
        </span>
      ))}
      {byAssistant && sessions?.length === 0 && `, ${t("memory.chatDeleted")}`}
      {placed &&
        ` · ${projectId ? t("memory.inProject", { name: project?.name ?? "…" }) : t("memory.inNoProject")}`}
    </Text>
  );
}
