/** What the assistant's model does behind the answers: whether it does, what waits, what failed. */

import { Alert, Button, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import type { Jobs } from "../../backend/memory/jobs.ts";
import { useSync } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { tell, tellError } from "../notify.ts";
import { jobs as words } from "../words/jobs.ts";
import { FailedJob } from "./FailedJob.tsx";
import { useJobs } from "./useJobs.ts";

export function BackgroundJobs() {
  const { jobs, look, retry } = useJobs();
  const kind = useSync()?.kind;
  const again = (id?: string) => void retry(id).then(() => tell(words.retried), tellError);
  return (
    <Section title={words.title} hint={words.hint}>
      {jobs === undefined && <Skeleton h={80} />}
      {jobs === null && <Text role="status">{words.away(kind)}</Text>}
      {jobs && (
        <>
          <Extraction extraction={jobs.extraction} />
          <Text role="status">{words.counts(jobs.counts.waiting, jobs.counts.running)}</Text>
          <Failed jobs={jobs.jobs.filter(({ error }) => error)} onRetry={again} />
        </>
      )}
      <Group>
        <Button variant="default" onClick={() => void look()}>
          {words.refresh}
        </Button>
      </Group>
    </Section>
  );
}

function Extraction({ extraction: { available, model, daily, today } }: Pick<Jobs, "extraction">) {
  if (model === null) return <Alert color="orange">{words.noAssistant}</Alert>;
  if (!available) return <Alert color="orange">{words.off}</Alert>;
  return <Text>{today >= daily ? words.spent(daily) : words.on(model, today, daily)}</Text>;
}

function Failed({ jobs, onRetry }: { jobs: Jobs["jobs"]; onRetry: (id?: string) => void }) {
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={4} size="h5">
          {words.failedTitle}
        </Title>
        {jobs.filter(({ state }) => state === "failed").length > 1 && (
          <Button size="compact-md" variant="light" onClick={() => onRetry()}>
            {words.retryAll}
          </Button>
        )}
      </Group>
      {jobs.length === 0 && <Text c="dimmed">{words.noFailed}</Text>}
      <PlainList>
        {jobs.map((job) => (
          <FailedJob key={job.id} job={job} onRetry={() => onRetry(job.id)} />
        ))}
      </PlainList>
    </Stack>
  );
}
