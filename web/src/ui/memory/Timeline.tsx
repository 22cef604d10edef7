/** What was said in all conversations: by day, or what fits the words. */

import { Button, Group, Skeleton, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { grouped } from "../../lib/groupBy.ts";
import type { TimelineTurn, MemoryPlace } from "../../backend/memory/timeline.ts";
import { useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { TimelineItem } from "./TimelineItem.tsx";
import { useTimeline } from "./useTimeline.ts";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const PAGE = 50;
const TYPING_MS = 250;

export function Timeline() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<MemoryPlace>("*");
  const [most, setMost] = useState(PAGE);
  const [asked] = useDebouncedValue(query.trim(), TYPING_MS);
  const found = useTimeline(asked, where, most);
  return (
    <Section title={t("timeline.title")} hint={t("timeline.hint")}>
      <Group grow align="end" gap="xs" preventGrowOverflow={false}>
        <TextInput
          type="search"
          label={t("timeline.search")}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
        <ScopeSelect label={t("memory.where")} value={where} onChange={setWhere} everywhere />
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {found && asked && found.turns.length > 0 && (
          <>
            {t("timeline.found", { n: found.turns.length })}{" "}
            {found.by === "server" ? t("timeline.byServer") : t("timeline.byDevice")}
          </>
        )}
        {found?.turns.length === 0 && (asked ? t("timeline.noneFound") : t("timeline.none"))}
      </Text>
      {!found && <Skeleton h={120} />}
      {found && (asked ? <Turns turns={found.turns} dated /> : <Days turns={found.turns} />)}
      {found?.more && (
        <Button variant="subtle" onClick={() => setMost(most + PAGE)}>
          {t("common.showMore")}
        </Button>
      )}
    </Section>
  );
}

function Days({ turns }: { turns: readonly TimelineTurn[] }) {
  return [...grouped(turns, ({ createdAt }) => date(createdAt))].map(([day, turns]) => (
    <Stack key={day} gap="xs">
      <Title order={4} size="h6" c="dimmed">
        {day}
      </Title>
      <Turns turns={turns} />
    </Stack>
  ));
}

function Turns({ turns, dated = false }: { turns: readonly TimelineTurn[]; dated?: boolean }) {
  const titles = new Map(useRows("sessions")?.map(({ id, title }) => [id, title]));
  return (
    <PlainList>
      {turns.map((turn) => (
        <TimelineItem
          key={turn.id}
          turn={turn}
          title={titles.get(turn.sessionId) ?? t("timeline.untitled")}
          dated={dated}
        />
      ))}
    </PlainList>
  );
}
