/** What is remembered in a place, those last said first: said now, and what was said before. */

import { Box, Button, Group, Skeleton, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { remembered } from "../../core/memory/memoryHistory.ts";
import { matcher } from "../../core/text/wordMatch.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePending } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { stored } from "../notify.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useNow } from "../useNow.ts";
import type { MemoryPlace } from "../../backend/memory/timeline.ts";
import { Statement } from "./Statement.tsx";
import { StatementForm } from "./StatementForm.tsx";
import { t } from "../../locale/t.ts";

const PAGE = 30;

interface Props {
  /** Of one project; null: of none; absent: of all. */
  projectId?: string | null;
  query?: string;
  filter?: ReactNode;
}

export function StatementList({ projectId, query = "", filter }: Props) {
  const memories = useRows("memories");
  const pending = usePending();
  const now = useNow();
  const [most, setMost] = useState(PAGE);
  const fits = matcher(query);
  const here = memories?.filter((one) => projectId === undefined || (one.projectId ?? null) === projectId);
  const found = remembered(here ?? []).filter(
    ({ current, earlier }) =>
      !pending.has(current.id) && fits([current, ...earlier].map(({ text }) => text).join(" ")),
  );
  const none = memories?.length && (query || projectId !== undefined) && filter;
  return (
    <Section title={t("memory.memories")} hint={t("memory.memoriesHint")}>
      {filter}
      {!memories && <Skeleton h={80} />}
      {memories && found.length === 0 && (
        <Text c="dimmed">{none ? t("memory.noMemoriesFound") : t("memory.noMemories")}</Text>
      )}
      <PlainList>
        {found.slice(0, most).map((one) => (
          <Statement key={one.current.id} remembered={one} now={now} placed={projectId === undefined} />
        ))}
      </PlainList>
      {found.length > most && (
        <Button variant="subtle" onClick={() => setMost(most + PAGE)}>
          {t("common.showMore")}
        </Button>
      )}
      <Add where={projectId} />
    </Section>
  );
}

function Add({ where }: { where: MemoryPlace | undefined }) {
  const { api } = useAccountApi();
  const [adding, setAdding] = useState(false);

  const add = (text: string, projectId: string | null) =>
    void stored(api.memory.addMemory(text, projectId), () => setAdding(false));

  return (
    <Box>
      {adding ? (
        <StatementForm where={where ?? null} choose onSave={add} onCancel={() => setAdding(false)} />
      ) : (
        <Group>
          <Button variant="default" onClick={() => setAdding(true)}>
            {t("memory.addMemory")}
          </Button>
        </Group>
      )}
    </Box>
  );
}
