/** What was said, in all conversations: found by the server by words and by meaning, else by words on this device. */

import { request } from "../../lib/http.ts";
import { matcher } from "../../core/text/wordMatch.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { House } from "../account/accountContext.ts";

/** Those of a project, with null those in none, with "*" all. */
export type MemoryPlace = string | null;

export interface TimelineTurn {
  id: string;
  sessionId: string;
  createdAt: string;
  /** What was asked, and the passage that fits. */
  question: string;
  text: string;
}

export interface Timeline {
  turns: TimelineTurn[];
  /** There may be more. */
  more: boolean;
  /** Found by the server, by meaning too; or on this device, by words alone. */
  by: "server" | "device";
}

interface Recollections {
  results: { id: string; text: string; createdAt: string; sessionId: string | null }[];
}

const FOUND_MOST = 50;
const TIMEOUT_MS = 5_000;

/** Without words the newest; with words those that fit, the best first when the server has found them. */
export async function timeline(
  house: House,
  query: string,
  where: MemoryPlace,
  most: number,
): Promise<Timeline> {
  if (!query.trim()) return here(house, query, where, most);
  const found = await there(house, query, where).catch(() => undefined);
  return found ?? here(house, query, where, most);
}

/** Undefined: there is no way to ask for it. */
async function there(house: House, query: string, where: MemoryPlace): Promise<Timeline | undefined> {
  const scope = await scopeOf(house, where);
  if (!scope) return undefined;
  const asked = new URLSearchParams({ q: query, limit: String(FOUND_MOST), ...scope });
  const { results } = await request<Recollections>(
    house.wire,
    `/v1/episodes/search?${asked}`,
    {},
    TIMEOUT_MS,
  );
  const rows = await house.records.episodes.findByIds(results.map(({ id }) => id)).exec();
  const turns = results.map(({ id, text, createdAt, sessionId }) => ({
    ...{ id, text, createdAt, sessionId: sessionId ?? "" },
    question: rows.get(id)?.userMessage ?? "",
  }));
  return { turns, more: false, by: "server" };
}

/** The pool has no name: any session that is in it sees it. */
async function scopeOf({ records }: House, where: MemoryPlace): Promise<Record<string, string> | undefined> {
  if (where !== null) return { project: where };
  const [pooled] = await records.sessions
    .find({ selector: { projectId: { $exists: false } }, limit: 1 })
    .exec();
  return pooled && { sessionId: pooled.id };
}

async function here({ records }: House, query: string, where: MemoryPlace, most: number): Promise<Timeline> {
  const selector = where === "*" ? {} : { projectId: where ?? { $exists: false } };
  const sessions = new Set((await records.sessions.find({ selector } as object).exec()).map(({ id }) => id));
  const fits = matcher(query);
  const rows = await records.episodes.find({ sort: [{ createdAt: "desc" }] }).exec();
  const found = rows.filter(
    ({ sessionId, userMessage, aiResponse }) =>
      (where === "*" || sessions.has(sessionId)) && fits(`${userMessage} ${aiResponse}`),
  );
  return { turns: found.slice(0, most).map(said), more: found.length > most, by: "device" };
}

function said({ id, sessionId, createdAt, userMessage, aiResponse }: EpisodeDoc): TimelineTurn {
  return { id, sessionId, createdAt, question: userMessage, text: aiResponse };
}
