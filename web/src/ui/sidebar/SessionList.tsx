import { Box, Button, CloseButton, Text, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { sortByLastUse } from "../../core/chat/sortByLastUse.ts";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { SessionRow } from "./SessionRow.tsx";
import { t } from "../../locale/t.ts";

const PAGE = 100;
const WITHOUT_PROJECT = { projectId: { $exists: false } };
/** Number of chats from which on the search field is shown. A shorter list is visible as a whole. */
const SEARCH_MIN = 8;

/** Show the chats without a project, the latest first. A search also finds the chats of projects. */
export function SessionList() {
  const [query, setQuery] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const sessions = useLatest(useRows("sessions", sessionQuery(query, limit)));
  const pending = usePendingDeletes();
  if (!sessions) return <Box flex={1} />;
  const isSearch = query.trim() !== "";
  return (
    <>
      {(isSearch || sessions.length >= SEARCH_MIN) && (
        <TextInput
          size="xs"
          type="search"
          aria-label={t("sidebar.searchChats")}
          placeholder={t("sidebar.searchChats")}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
          rightSection={
            isSearch && (
              <CloseButton size="sm" aria-label={t("sidebar.clearSearch")} onClick={() => setQuery("")} />
            )
          }
        />
      )}
      <Box flex={1} mih="7rem" style={{ overflowY: "auto" }}>
        {sessions.length === 0 && (
          <Text size="sm" c="dimmed" px="sm">
            {isSearch ? t("sidebar.noChatsFound") : t("sidebar.noChats")}
          </Text>
        )}
        <PlainList gap={0} aria-label={t("sidebar.chats")}>
          {sortByLastUse(sessions)
            .filter(({ id }) => !pending.has(id))
            .map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
        </PlainList>
        {sessions.length === limit && (
          <Button variant="subtle" fullWidth onClick={() => setLimit(limit + PAGE)}>
            {t("common.showMore")}
          </Button>
        )}
      </Box>
    </>
  );
}

function sessionQuery(search: string, limit: number): object {
  const escaped = search.trim().replace(/[.*+?^${}()|[\]\\]/gu, String.raw`\$&`);
  const selector = escaped ? { title: { $regex: escaped, $options: "i" } } : WITHOUT_PROJECT;
  return { selector, sort: [{ updatedAt: "desc" }], limit };
}

/** Return the previous rows while the next query runs, so that the list does not flicker while the user types. */
function useLatest(sessions: SessionDoc[] | undefined): SessionDoc[] | undefined {
  const latest = useRef(sessions);
  if (sessions) latest.current = sessions;
  return latest.current;
}
