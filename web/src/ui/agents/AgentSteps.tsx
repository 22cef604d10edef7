import { Alert, Button, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useRef, useState } from "react";
import { NO_FILTER, type Observation, type ObservationFilter } from "../../core/agents/observations.ts";
import { isUnreachable, errorMessage } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { notify, notifyError } from "../notify.ts";
import classes from "./agents.module.css";
import { DeleteStepDialog } from "./DeleteStepDialog.tsx";
import { AgentStepFilters } from "./AgentStepFilters.tsx";
import { AgentStepList } from "./AgentStepList.tsx";
import { useAgentActivity } from "./useAgentActivity.ts";
import { useSteps, type StepsResult } from "./useSteps.ts";
import { t } from "../../locale/t.ts";

const TYPING_MS = 250;

/** Show the activity of agents in a project. This activity is stored only on the server. */
export default function AgentSteps({ projectId }: { projectId: string }) {
  const [filters, setFilters] = useState<ObservationFilter>(NO_FILTER);
  const [words] = useDebouncedValue(filters.words.trim(), TYPING_MS);
  const { result, refresh, loadMore, togglePin, remove } = useSteps(projectId, { ...filters, words });
  const activity = useAgentActivity(projectId, result?.kind);
  const [deleting, setDeleting] = useState<Observation>();
  const status = useRef<HTMLParagraphElement>(null);
  const isUnfiltered = Object.values({ ...filters, words }).every((value) => !value);

  const onPin = (step: Observation) =>
    void togglePin(step).then(
      ({ pinned }) => notify(pinned ? t("agents.pinnedNow") : t("agents.unpinnedNow")),
      notifyError,
    );

  function confirmDeletion(step: Observation) {
    setDeleting(undefined);
    void remove(step).then(() => {
      notify(t("agents.deleted"));
      status.current?.focus(); // the focused button was removed with its step
    }, notifyError);
  }

  return (
    <Section title={t("agents.title")} hint={t("agents.hint")}>
      {activity?.notice && (
        <Alert color="orange" variant="light" title={t("agents.duplicateName")}>
          {activity.notice}
        </Alert>
      )}
      {result?.kind !== "failed" && !(isUnfiltered && isEmpty(result)) && (
        <AgentStepFilters
          filters={filters}
          sessions={activity?.sessions ?? []}
          onChange={(change) => setFilters({ ...filters, ...change })}
        />
      )}
      <Group justify="space-between" gap="xs">
        <Text ref={status} size="sm" c="dimmed" role="status" tabIndex={-1} className={classes["status"]!}>
          <Summary result={result} isUnfiltered={isUnfiltered} />
        </Text>
        {result?.kind === "loaded" && (
          <Button size="compact-sm" variant="default" onClick={refresh}>
            {t("common.refresh")}
          </Button>
        )}
      </Group>
      {!result && <Skeleton h={120} />}
      {result?.kind === "failed" && (
        <Group>
          <Button variant="default" onClick={refresh}>
            {t("common.retry")}
          </Button>
        </Group>
      )}
      {result?.kind === "loaded" && (
        <Stack gap="md">
          <AgentStepList
            steps={result.page.observations}
            byDay={!result.isSearch}
            onPin={onPin}
            onDelete={setDeleting}
          />
          {result.page.next && (
            <Button variant="subtle" onClick={() => void loadMore().catch(notifyError)}>
              {t("common.showMore")}
            </Button>
          )}
        </Stack>
      )}
      <DeleteStepDialog step={deleting} onConfirm={confirmDeletion} onClose={() => setDeleting(undefined)} />
    </Section>
  );
}

function isEmpty(result: StepsResult | undefined): boolean {
  return result?.kind === "loaded" && result.page.observations.length === 0;
}

interface SummaryProps {
  result: StepsResult | undefined;
  isUnfiltered: boolean;
}

function Summary({ result, isUnfiltered }: SummaryProps) {
  if (!result) return t("agents.loading");
  if (result.kind === "failed") {
    const { error } = result;
    return isUnreachable(error) ? t("agents.offline") : `${t("agents.failed")} ${errorMessage(error)}`;
  }
  const { observations, next } = result.page;
  if (observations.length === 0) return isUnfiltered ? t("agents.none") : t("agents.noneFound");
  return result.isSearch
    ? t("agents.found", { n: observations.length })
    : t(next === null ? "agents.steps" : "agents.newest", { n: observations.length });
}
