import { Alert, Button, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { Answer } from "../conversation/Answer.tsx";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { errorMessage } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { useNow } from "../useNow.ts";
import { useProjectOverview } from "./useProjectOverview.ts";
import { ago, dateTime } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const NO_CITATIONS: never[] = [];

/** Show the summary of a project, and a button that asks the assistant to write it. */
export function ProjectOverview({ projectId }: { projectId: string }) {
  const { api } = useAccountApi();
  const state = useProjectOverview(projectId);
  const summaries = useRows("summaries", { selector: { projectId, sessionId: { $exists: false } } });
  const overview = summaries?.toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt))[0];
  const write = () => void api.memory.generateOverview(projectId);
  return (
    <Section title={t("projects.overview")} hint={t("projects.overview.hint")}>
      {overview && (
        <Paper withBorder p="md">
          <Answer text={overview.content} citations={NO_CITATIONS} onCitation={() => {}} />
          <Text size="xs" c="dimmed" mt="sm">
            {t("projects.overview.written", { when: dateTime(overview.updatedAt) })}
          </Text>
        </Paper>
      )}
      {summaries && !overview && state?.kind !== "writing" && (
        <Text c="dimmed">{t("projects.overview.none")}</Text>
      )}
      <div aria-live="polite">
        {state?.kind === "writing" && (
          <AnswerDraft since={state.since} onStop={() => void api.memory.stopOverview(projectId)} />
        )}
        {state?.kind === "failed" && (
          <Alert color="orange" variant="light" title={t("projects.overview.failed")}>
            {errorMessage(state)}
          </Alert>
        )}
      </div>
      {state?.kind !== "writing" && (
        <Group>
          <Button variant="default" onClick={write}>
            {overview ? t("projects.overview.rewrite") : t("projects.overview.write")}
          </Button>
        </Group>
      )}
    </Section>
  );
}

function AnswerDraft({ since, onStop }: { since: string; onStop: () => void }) {
  const now = useNow();
  return (
    <Paper withBorder p="md">
      <Stack gap="xs">
        <Group wrap="nowrap">
          <Loader type="dots" size="sm" />
          <Text size="sm">
            {t("projects.overview.writing")} {t("projects.overview.started", { when: ago(since, now) })}
          </Text>
        </Group>
        <Group>
          <Button size="compact-md" variant="default" onClick={onStop}>
            {t("common.stop")}
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}
