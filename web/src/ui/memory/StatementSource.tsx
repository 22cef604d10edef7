/** Where a statement is from: by whom, when, in which conversation, and who sees it. */

import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { date } from "../words/measures.ts";
import { memory as words } from "../words/memory.ts";

export function StatementSource({ memory, placed }: { memory: MemoryDoc; placed: boolean }) {
  const { source, createdAt, sessionIds, projectId } = memory;
  const byAssistant = source === "extracted";
  const sessions = useRows("sessions", { selector: { id: { $in: sessionIds } } });
  const project = useRows("projects", { selector: { id: projectId ?? "" } })?.[0];
  return (
    <Text size="sm" c="dimmed">
      {words.said(byAssistant ? words.byAssistant : words.byYou, date(createdAt))}
      {sessions?.map(({ id, title }, at) => (
        <span key={id}>
          {at === 0 ? `, ${words.inSession} ` : ", "}
          <Anchor component={Link} href={`/s/${id}`} dir="auto" inherit underline="always">
            {title}
          </Anchor>
        </span>
      ))}
      {byAssistant && sessions?.length === 0 && `, ${words.sourceGone}`}
      {placed && ` · ${projectId ? words.inProject(project?.name ?? "…") : words.inPool}`}
    </Text>
  );
}
