import { Button, Group, Skeleton, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { groupBy } from "../../lib/groupBy.ts";
import type { MemoryPlace, TimelineTurn } from "../../backend/api.ts";
import { useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { TimelineItem } from "./TimelineItem.tsx";
import { useTimeline } from "./useTimeline.ts";
import { date } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";
import { sessionTitle } from "../sessionTitle.ts";

const PAGE = 50;
const TYPING_MS = 250;

/** Show the messages of all chats by day, or the messages that match a search. */
export function Timeline() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<MemoryPlace>("*");
  const [limit, setLimit] = useState(PAGE);
  const [search] = useDebouncedValue(query.trim(), TYPING_MS);
  const timeline = useTimeline(search, where, limit);
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
        {timeline && search && timeline.turns.length > 0 && (
          <>
            {t("timeline.found", { n: timeline.turns.length })}{" "}
            {timeline.by === "server" ? t("timeline.foundByServer") : t("timeline.foundOnDevice")}
          </>
        )}
        {timeline?.turns.length === 0 && (search ? t("timeline.noneFound") : t("timeline.none"))}
      </Text>
      {!timeline && <Skeleton h={120} />}
      {timeline && (search ? <Turns turns={timeline.turns} showDate /> : <Days turns={timeline.turns} />)}
      {timeline?.more && (
        <Button variant="subtle" onClick={() => setLimit(limit + PAGE)}>
          {t("common.showMore")}
        </Button>
      )}
    </Section>
  );
}

function Days({ turns }: { turns: readonly TimelineTurn[] }) {
  return [...groupBy(turns, ({ createdAt }) => date(createdAt))].map(([day, turns]) => (
    <Stack key={day} gap="xs">
      <Title order={4} size="h6" c="dimmed">
        {day}
      </Title>
      <Turns turns={turns} />
    </Stack>
  ));
}

function Turns({ turns, showDate = false }: { turns: readonly TimelineTurn[]; showDate?: boolean }) {
  const titles = new Map(useRows("sessions")?.map((session) => [session.id, sessionTitle(session)]));
  return (
    <PlainList>
      {turns.map((turn) => (
        <TimelineItem
          key={turn.id}
          turn={turn}
          title={titles.get(turn.sessionId) ?? t("timeline.untitled")}
          showDate={showDate}
        />
      ))}
    </PlainList>
  );
}
