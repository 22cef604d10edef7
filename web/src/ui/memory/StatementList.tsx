import { Box, Button, Group, Skeleton, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { groupHistories } from "../../core/memory/memoryHistory.ts";
import { createMatcher } from "../../core/text/wordMatch.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { afterSaving } from "../notify.ts";
import { useNow } from "../useNow.ts";
import type { MemoryPlace } from "../../backend/api.ts";
import { Statement } from "./Statement.tsx";
import { StatementForm } from "./StatementForm.tsx";
import { t } from "../../locale/t.ts";

const PAGE = 30;

interface Props {
  /** Id of the project whose memories are shown. Null: memories without a project. Undefined: all memories. */
  projectId?: string | null;
  query?: string;
  filter?: ReactNode;
}

/** Show the memories that match `projectId` and `query`, the latest first, and a form to add a memory. */
export function StatementList({ projectId, query = "", filter }: Props) {
  const memories = useRows("memories");
  const pending = usePendingDeletes();
  const now = useNow();
  const [limit, setLimit] = useState(PAGE);
  const matches = createMatcher(query);
  const inScope = memories?.filter(
    (memory) => projectId === undefined || (memory.projectId ?? null) === projectId,
  );
  const found = groupHistories(inScope ?? []).filter(
    ({ current, earlier }) =>
      !pending.has(current.id) && matches([current, ...earlier].map(({ text }) => text).join(" ")),
  );
  const isFiltered = memories?.length && (query || projectId !== undefined) && filter;
  return (
    <Section title={t("memory.memories")} hint={t("memory.memoriesHint")}>
      {filter}
      {!memories && <Skeleton h={80} />}
      {memories && found.length === 0 && (
        <Text c="dimmed">{isFiltered ? t("memory.noMemoriesFound") : t("memory.noMemories")}</Text>
      )}
      <PlainList>
        {found.slice(0, limit).map((memory) => (
          <Statement
            key={memory.current.id}
            remembered={memory}
            now={now}
            showProject={projectId === undefined}
          />
        ))}
      </PlainList>
      {found.length > limit && (
        <Button variant="subtle" onClick={() => setLimit(limit + PAGE)}>
          {t("common.showMore")}
        </Button>
      )}
      <AddMemory where={projectId} />
    </Section>
  );
}

function AddMemory({ where }: { where: MemoryPlace | undefined }) {
  const { api } = useAccountApi();
  const [adding, setAdding] = useState(false);

  const add = (text: string, projectId: string | null) =>
    void afterSaving(api.memory.addMemory(text, projectId), () => setAdding(false));

  return (
    <Box>
      {adding ? (
        <StatementForm
          where={where ?? null}
          canChooseProject
          onSave={add}
          onCancel={() => setAdding(false)}
        />
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
