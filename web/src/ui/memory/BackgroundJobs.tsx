import { Alert, Button, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import type { JobList } from "../../backend/api.ts";
import { useSync } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { notify, notifyError } from "../notify.ts";
import { FailedJob } from "./FailedJob.tsx";
import { useJobs } from "./useJobs.ts";
import { t } from "../../locale/t.ts";

/** Show the number of background jobs of the language model that wait or run, and the jobs that failed. */
export function BackgroundJobs() {
  const { jobs, refresh, retry } = useJobs();
  const kind = useSync()?.kind;
  const onRetry = (id?: string) => void retry(id).then(() => notify(t("jobs.retrying")), notifyError);
  return (
    <Section title={t("jobs.title")} hint={t("jobs.hint")}>
      {jobs === undefined && <Skeleton h={80} />}
      {jobs === null && (
        <Text role="status">{t(kind === "signed-out" ? "jobs.signedOut" : "jobs.unreachable")}</Text>
      )}
      {jobs && (
        <>
          <Extraction extraction={jobs.extraction} />
          <Text role="status">
            {t("jobs.counts", {
              total: jobs.counts.waiting + jobs.counts.running,
              waiting: jobs.counts.waiting,
              running: jobs.counts.running,
            })}
          </Text>
          <FailedJobs jobs={jobs.jobs.filter(({ error }) => error)} onRetry={onRetry} />
        </>
      )}
      <Group>
        <Button variant="default" onClick={() => void refresh()}>
          {t("common.refresh")}
        </Button>
      </Group>
    </Section>
  );
}

function Extraction({ extraction: { available, model, daily, today } }: Pick<JobList, "extraction">) {
  if (model === null) return <Alert color="orange">{t("jobs.noAssistant")}</Alert>;
  if (!available) return <Alert color="orange">{t("jobs.off")}</Alert>;
  return (
    <Text>{today >= daily ? t("jobs.limitReached", { daily }) : t("jobs.on", { model, today, daily })}</Text>
  );
}

function FailedJobs({ jobs, onRetry }: { jobs: JobList["jobs"]; onRetry: (id?: string) => void }) {
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={4} size="h5">
          {t("jobs.failedTitle")}
        </Title>
        {jobs.filter(({ state }) => state === "failed").length > 1 && (
          <Button size="compact-md" variant="light" onClick={() => onRetry()}>
            {t("common.retryAll")}
          </Button>
        )}
      </Group>
      {jobs.length === 0 && <Text c="dimmed">{t("jobs.noFailed")}</Text>}
      <PlainList>
        {jobs.map((job) => (
          <FailedJob key={job.id} job={job} onRetry={() => onRetry(job.id)} />
        ))}
      </PlainList>
    </Stack>
  );
}
