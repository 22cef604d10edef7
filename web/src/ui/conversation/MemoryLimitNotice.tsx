import { Text } from "@mantine/core";
import { SESSION_MEMORIES_MAX } from "../../core/memory/extraction.ts";
import { useRows } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

/** Show a notice that the chat has the maximum number of extracted memories. */
export function MemoryLimitNotice({ sessionId }: { sessionId: string }) {
  const selector = { source: "extracted", sessionIds: sessionId, supersededBy: { $exists: false } };
  const count = useRows("memories", { selector, limit: SESSION_MEMORIES_MAX })?.length ?? 0;
  if (count < SESSION_MEMORIES_MAX) return null;
  return (
    <Text size="sm" c="dimmed">
      {t("chat.memoryFull", { n: SESSION_MEMORIES_MAX })}
    </Text>
  );
}
