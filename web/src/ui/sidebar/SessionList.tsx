/** The conversations that are in no project, newest first, a page at a time; those of all are found by their title. */

import { Box, Button, CloseButton, Text, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { latestFirst } from "../../core/chat/sortByLastUse.ts";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePending } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { SessionRow } from "./SessionRow.tsx";
import { t } from "../../locale/t.ts";

const PAGE = 100;
const POOL = { projectId: { $exists: false } };
const SEARCH_FROM = 8; // fewer are seen at once

export function SessionList() {
  const [query, setQuery] = useState("");
  const [most, setMost] = useState(PAGE);
  const sessions = useLatest(useRows("sessions", wanted(query, most)));
  const pending = usePending();
  if (!sessions) return <Box flex={1} />;
  const searching = query.trim() !== "";
  return (
    <>
      {(searching || sessions.length >= SEARCH_FROM) && (
        <TextInput
          size="xs"
          type="search"
          aria-label={t("sidebar.searchChats")}
          placeholder={t("sidebar.searchChats")}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
          rightSection={
            searching && (
              <CloseButton size="sm" aria-label={t("sidebar.clearSearch")} onClick={() => setQuery("")} />
            )
          }
        />
      )}
      <Box flex={1} mih="7rem" style={{ overflowY: "auto" }}>
        {sessions.length === 0 && (
          <Text size="sm" c="dimmed" px="sm">
            {searching ? t("sidebar.noChatsFound") : t("sidebar.noChats")}
          </Text>
        )}
        <PlainList gap={0} aria-label={t("sidebar.chats")}>
          {latestFirst(sessions)
            .filter(({ id }) => !pending.has(id))
            .map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
        </PlainList>
        {sessions.length === most && (
          <Button variant="subtle" fullWidth onClick={() => setMost(most + PAGE)}>
            {t("common.showMore")}
          </Button>
        )}
      </Box>
    </>
  );
}

function wanted(query: string, limit: number): object {
  const escaped = query.trim().replace(/[.*+?^${}()|[\]\\]/gu, String.raw`\$&`);
  const selector = escaped ? { title: { $regex: escaped, $options: "i" } } : POOL;
  return { selector, sort: [{ updatedAt: "desc" }], limit };
}

/** What was there last, until the next answer comes: a list that vanishes at each letter is hard to read. */
function useLatest(sessions: SessionDoc[] | undefined): SessionDoc[] | undefined {
  const latest = useRef(sessions);
  if (sessions) latest.current = sessions;
  return latest.current;
}
