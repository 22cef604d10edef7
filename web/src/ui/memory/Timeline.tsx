/** What was said in all conversations: by day, or what fits the words. */

import { Button, Group, Skeleton, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { grouped } from "../../lib/groupBy.ts";
import type { Said, Where } from "../../backend/memory/timeline.ts";
import { useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { date } from "../words/measures.ts";
import { timeline as words } from "../words/timeline.ts";
import { TimelineItem } from "./TimelineItem.tsx";
import { useTimeline } from "./useTimeline.ts";

const PAGE = 50;
const TYPING_MS = 250;

export function Timeline() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<Where>("*");
  const [most, setMost] = useState(PAGE);
  const [asked] = useDebouncedValue(query.trim(), TYPING_MS);
  const found = useTimeline(asked, where, most);
  return (
    <Section title={words.title} hint={words.hint}>
      <Group grow align="end" gap="xs" preventGrowOverflow={false}>
        <TextInput
          type="search"
          label={words.search}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
        <ScopeSelect label={words.where} value={where} onChange={setWhere} everywhere />
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {found && asked && found.turns.length > 0 && (
          <>
            {words.found(found.turns.length)}. {found.by === "server" ? words.byServer : words.byDevice}
          </>
        )}
        {found?.turns.length === 0 && (asked ? words.nothing : words.none)}
      </Text>
      {!found && <Skeleton h={120} />}
      {found && (asked ? <Turns turns={found.turns} dated /> : <Days turns={found.turns} />)}
      {found?.more && (
        <Button variant="subtle" onClick={() => setMost(most + PAGE)}>
          {words.more}
        </Button>
      )}
    </Section>
  );
}

function Days({ turns }: { turns: readonly Said[] }) {
  return [...grouped(turns, ({ createdAt }) => date(createdAt))].map(([day, turns]) => (
    <Stack key={day} gap="xs">
      <Title order={4} size="h6" c="dimmed">
        {day}
      </Title>
      <Turns turns={turns} />
    </Stack>
  ));
}

function Turns({ turns, dated = false }: { turns: readonly Said[]; dated?: boolean }) {
  const titles = new Map(useRows("sessions")?.map(({ id, title }) => [id, title]));
  return (
    <PlainList>
      {turns.map((turn) => (
        <TimelineItem
          key={turn.id}
          turn={turn}
          title={titles.get(turn.sessionId) ?? words.untitled}
          dated={dated}
        />
      ))}
    </PlainList>
  );
}
