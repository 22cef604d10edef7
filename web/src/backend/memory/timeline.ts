/** Search messages: on the server by words and meaning, or, if that fails, on this device by words. */

import { requestJson } from "../../lib/http.ts";
import { createMatcher } from "../../core/text/wordMatch.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** Place to search: a project id, null for the pool, or "*" for everything. */
export type MemoryPlace = string | null;

export interface TimelineTurn {
  id: string;
  sessionId: string;
  createdAt: string;
  /** The question of the turn. `text` is the matching text from the server, or the answer if this device searched. */
  question: string;
  text: string;
}

export interface Timeline {
  turns: TimelineTurn[];
  /** Whether more turns match than `turns` contains. */
  more: boolean;
  /**
   * Where the search ran: on the server, which also searches by meaning, or on this device, which searches by words
   * only.
   */
  by: "server" | "device";
}

interface SearchResponse {
  results: { id: string; text: string; createdAt: string; sessionId: string | null }[];
}

const MAX_FOUND = 50;
const TIMEOUT_MS = 5_000;

/**
 * Return matching turns: the best first if the server searched, the newest first if this device did. Without a query,
 * return the newest turns.
 */
export async function searchTimeline(
  context: AccountContext,
  query: string,
  where: MemoryPlace,
  most: number,
): Promise<Timeline> {
  if (!query.trim()) return searchLocal(context, query, where, most);
  const found = await searchServer(context, query, where).catch(() => undefined);
  return found ?? searchLocal(context, query, where, most);
}

/** Search on the server. Return undefined if the request cannot express the scope. */
async function searchServer(
  context: AccountContext,
  query: string,
  where: MemoryPlace,
): Promise<Timeline | undefined> {
  const scope = await scopeParams(context, where);
  if (!scope) return undefined;
  const asked = new URLSearchParams({ q: query, limit: String(MAX_FOUND), ...scope });
  const { results } = await requestJson<SearchResponse>(
    context.server,
    `/v1/episodes/search?${asked}`,
    {},
    TIMEOUT_MS,
  );
  const rows = await context.database.episodes.findByIds(results.map(({ id }) => id)).exec();
  const turns = results.map(({ id, text, createdAt, sessionId }) => ({
    ...{ id, text, createdAt, sessionId: sessionId ?? "" },
    question: rows.get(id)?.userMessage ?? "",
  }));
  return { turns, more: false, by: "server" };
}

/**
 * Return the scope parameters of the request. The pool has no id, so the request names a session in the pool. Return
 * undefined if the pool has no session.
 */
async function scopeParams(
  { database }: AccountContext,
  where: MemoryPlace,
): Promise<Record<string, string> | undefined> {
  if (where !== null) return { project: where };
  const [pooled] = await database.sessions
    .find({ selector: { projectId: { $exists: false } }, limit: 1 })
    .exec();
  return pooled && { sessionId: pooled.id };
}

async function searchLocal(
  { database }: AccountContext,
  query: string,
  where: MemoryPlace,
  most: number,
): Promise<Timeline> {
  const selector = where === "*" ? {} : { projectId: where ?? { $exists: false } };
  const sessions = new Set((await database.sessions.find({ selector } as object).exec()).map(({ id }) => id));
  const fits = createMatcher(query);
  const rows = await database.episodes.find({ sort: [{ createdAt: "desc" }] }).exec();
  const found = rows.filter(
    ({ sessionId, userMessage, aiResponse }) =>
      (where === "*" || sessions.has(sessionId)) && fits(`${userMessage} ${aiResponse}`),
  );
  return { turns: found.slice(0, most).map(toTurn), more: found.length > most, by: "device" };
}

function toTurn({ id, sessionId, createdAt, userMessage, aiResponse }: EpisodeDoc): TimelineTurn {
  return { id, sessionId, createdAt, question: userMessage, text: aiResponse };
}
