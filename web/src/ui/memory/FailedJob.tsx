/** One job that failed, for now or for good: what it was about, why, and trying it again. */

import { Button, Group, Paper, Stack, Text } from "@mantine/core";
import { nameOf } from "../../core/schema/rowText.ts";
import type { Job } from "../../backend/memory/jobs.ts";
import { useRows } from "../../client/backendClient.tsx";
import { jobs as words } from "../words/jobs.ts";

export function FailedJob({ job, onRetry }: { job: Job; onRetry: () => void }) {
  const { kind, subject, state, attempts, due, error } = job;
  const [collection, id] = subject.split("/") as ["episodes" | "sessions" | "projects", string];
  const row = useRows(collection, { selector: { id } })?.[0];
  const about = row ? nameOf(collection, row as unknown as Record<string, unknown>) : words.gone;
  return (
    <Paper component="li" withBorder p="sm">
      <Group justify="space-between" wrap="nowrap" align="start">
        <Stack gap={2} miw={0}>
          <Text>
            {words.kinds[kind]}: <span dir="auto">{about}</span>
          </Text>
          <Text size="sm">{error}</Text>
          <Text size="xs" c="dimmed">
            {state === "failed" ? words.attempts(attempts) : words.next(attempts, due)}
          </Text>
        </Stack>
        <Button
          variant="light"
          size="compact-md"
          flex="none"
          aria-label={words.retryOf(about)}
          onClick={onRetry}
        >
          {words.retry}
        </Button>
      </Group>
    </Paper>
  );
}
