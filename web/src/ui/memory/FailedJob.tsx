import { Button, Group, Paper, Stack, Text } from "@mantine/core";
import { nameOf } from "../../core/schema/rowText.ts";
import type { Job } from "../../backend/api.ts";
import { nextAttempt } from "./nextAttempt.ts";
import { useRows } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

/**
 * Show a job that has failed at least once: its subject, its error, the time of the next attempt, if any, and a button
 * that retries the job at once.
 */
export function FailedJob({ job, onRetry }: { job: Job; onRetry: () => void }) {
  const { kind, subject, state, attempts, due, error } = job;
  const [collection, id] = subject.split("/") as ["episodes" | "sessions" | "projects", string];
  const row = useRows(collection, { selector: { id } })?.[0];
  const subjectName = row
    ? nameOf(collection, row as unknown as Record<string, unknown>)
    : t("jobs.deletedSubject");
  return (
    <Paper component="li" withBorder p="sm">
      <Group justify="space-between" wrap="nowrap" align="start">
        <Stack gap={2} miw={0}>
          <Text>
            {t(`jobs.kind.${kind}`)}: <span dir="auto">{subjectName}</span>
          </Text>
          <Text size="sm">{error}</Text>
          <Text size="xs" c="dimmed">
            {state === "failed" ? t("jobs.gaveUp", { n: attempts }) : nextAttempt(attempts, due)}
          </Text>
        </Stack>
        <Button
          variant="light"
          size="compact-md"
          flex="none"
          aria-label={t("common.actionOn", { action: t("common.retry"), name: subjectName })}
          onClick={onRetry}
        >
          {t("common.retry")}
        </Button>
      </Group>
    </Paper>
  );
}
