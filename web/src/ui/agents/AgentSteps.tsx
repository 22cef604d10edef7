/** What agents did in a project. The server is asked for it: it is not on the device. */

import { Alert, Button, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useRef, useState } from "react";
import { EVERYTHING, type Observation, type Wanted } from "../../core/agents/observations.ts";
import { isUnreachable, said } from "../errorMessage.ts";
import { Section } from "../components/Section.tsx";
import { tell, tellError } from "../notify.ts";
import classes from "./agents.module.css";
import { DeleteStepDialog } from "./DeleteStepDialog.tsx";
import { AgentStepFilters } from "./AgentStepFilters.tsx";
import { AgentStepList } from "./AgentStepList.tsx";
import { useAgentActivity } from "./useAgentActivity.ts";
import { useSteps, type Asked } from "./useSteps.ts";
import { t } from "../../locale/t.ts";

const TYPING_MS = 250;

export default function AgentSteps({ projectId }: { projectId: string }) {
  const [wanted, setWanted] = useState<Wanted>(EVERYTHING);
  const [typed] = useDebouncedValue(wanted.words.trim(), TYPING_MS);
  const { asked, look, more, pin, remove } = useSteps(projectId, { ...wanted, words: typed });
  const work = useAgentActivity(projectId, asked?.kind);
  const [deleting, setDeleting] = useState<Observation>();
  const status = useRef<HTMLParagraphElement>(null);
  const isWhole = Object.values({ ...wanted, words: typed }).every((one) => !one);

  const pinOrNot = (step: Observation) =>
    void pin(step).then(
      ({ pinned }) => tell(pinned ? t("agents.pinnedNow") : t("agents.unpinnedNow")),
      tellError,
    );

  function confirmDeletion(step: Observation) {
    setDeleting(undefined);
    void remove(step).then(() => {
      tell(t("agents.deleted"));
      status.current?.focus(); // what had the focus is gone
    }, tellError);
  }

  return (
    <Section title={t("agents.title")} hint={t("agents.hint")}>
      {work?.notice && (
        <Alert color="orange" variant="light" title={t("agents.namesake")}>
          {work.notice}
        </Alert>
      )}
      {asked?.kind !== "failed" && !(isWhole && isEmpty(asked)) && (
        <AgentStepFilters
          wanted={wanted}
          sessions={work?.sessions ?? []}
          onChange={(change) => setWanted({ ...wanted, ...change })}
        />
      )}
      <Group justify="space-between" gap="xs">
        <Text ref={status} size="sm" c="dimmed" role="status" tabIndex={-1} className={classes["status"]!}>
          <Summary asked={asked} isWhole={isWhole} />
        </Text>
        {asked?.kind === "shown" && (
          <Button size="compact-sm" variant="default" onClick={look}>
            {t("common.refresh")}
          </Button>
        )}
      </Group>
      {!asked && <Skeleton h={120} />}
      {asked?.kind === "failed" && (
        <Group>
          <Button variant="default" onClick={look}>
            {t("common.retry")}
          </Button>
        </Group>
      )}
      {asked?.kind === "shown" && (
        <Stack gap="md">
          <AgentStepList
            steps={asked.page.observations}
            byDay={!asked.searched}
            onPin={pinOrNot}
            onDelete={setDeleting}
          />
          {asked.page.next && (
            <Button variant="subtle" onClick={() => void more().catch(tellError)}>
              {t("common.showMore")}
            </Button>
          )}
        </Stack>
      )}
      <DeleteStepDialog step={deleting} onConfirm={confirmDeletion} onClose={() => setDeleting(undefined)} />
    </Section>
  );
}

function isEmpty(asked: Asked | undefined): boolean {
  return asked?.kind === "shown" && asked.page.observations.length === 0;
}

interface SummaryProps {
  asked: Asked | undefined;
  isWhole: boolean;
}

function Summary({ asked, isWhole }: SummaryProps) {
  if (!asked) return t("agents.loading");
  if (asked.kind === "failed") {
    return isUnreachable(asked.error) ? t("agents.offline") : `${t("agents.failed")} ${said(asked.error)}`;
  }
  const { observations, next } = asked.page;
  if (observations.length === 0) return isWhole ? t("agents.none") : t("agents.noneFound");
  return asked.searched
    ? t("agents.found", { n: observations.length })
    : t(next === null ? "agents.steps" : "agents.newest", { n: observations.length });
}
