/**
 * Recall memories for a question on this device: rank the rows of one scope by words and recency. The server
 * (services/memory/recall.py) also ranks by meaning. The rules for what can be recalled are the same.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import { queryDateTerms, dateTerms } from "../text/dates_in_text.ts";
import { freshness } from "./recency.ts";
import { normalize } from "../text/normalization.ts";
import type { RecalledMemory } from "../chat/prompt.ts";
import { tokenizeQuery } from "../text/tokenize.ts";
import { Postings, topKWithTies, bm25Scores } from "../text/bm25.ts";
import { FUSION_DEPTH, rescale } from "../text/fusion.ts";
import type { EntityDoc, EpisodeDoc, MemoryDoc, ProjectDoc, SessionDoc } from "../schema/rows.ts";
import { sees, type MemoryScope } from "./scope.ts";

/** The rows to search, in any order. Deleted rows are not included. */
export interface Rows {
  projects: readonly ProjectDoc[];
  sessions: readonly SessionDoc[];
  episodes: readonly EpisodeDoc[];
  memories: readonly MemoryDoc[];
  entities: readonly EntityDoc[];
}

interface Candidate {
  recalled: RecalledMemory;
  /** Date terms of the row's creation day, or an empty string for entities. */
  day: string;
  updatedAt: string;
  pinned: boolean;
}

const RELEVANCE = 0.7;
const RECENCY = 0.3;

/**
 * Return at most `k` rows that share a word with the question, best first. `now` is a timestamp as in rows.
 */
export function recall(
  query: string,
  scope: MemoryScope,
  rows: Rows,
  now: string,
  k: number,
): RecalledMemory[] {
  const candidates = within(scope, rows);
  const postings = Postings.ofTexts(candidates.map(({ recalled, day }) => `${day}\n${recalled.text}`));
  const scores = bm25Scores([postings], tokenizeQuery(`${query} ${queryDateTerms(query, now)}`));
  const hits = topKWithTies(scores, FUSION_DEPTH, 0).map((at) => [String(at), scores[at]!] as const);
  return rescale(hits)
    .map(([at, relevance]) => ({ relevance, candidate: candidates[Number(at)]! }))
    .map(({ relevance, candidate }) => ({
      recalled: candidate.recalled,
      score: RELEVANCE * relevance + RECENCY * freshness(candidate, Date.parse(now)),
    }))
    .sort((a, b) => b.score - a.score || compareStrings(a.recalled.id, b.recalled.id))
    .slice(0, k)
    .map(({ recalled }) => recalled);
}

function within(scope: MemoryScope, rows: Rows): Candidate[] {
  const projects = new Map(rows.projects.map(({ id, name }) => [id, `project "${name}"`]));
  const sessions = new Map(
    rows.sessions
      .filter(({ projectId }) => sees(scope, projectId))
      .map(({ id, title }) => [id, title ? `session "${title}"` : "untitled session"]),
  );
  const placed = (projectId: string | undefined) => projects.get(projectId ?? "") ?? "memory";
  const said = (sessionIds: readonly string[]) =>
    sessionIds.map((id) => sessions.get(id)).findLast((title) => title !== undefined);
  return [
    ...rows.episodes
      .filter(
        ({ sessionId, status }) => sessions.has(sessionId) && (status === "done" || status === "stopped"),
      )
      .map((row) => {
        const text = `${row.userMessage}\n\n${row.aiResponse}`;
        return candidate("episodes", row, said([row.sessionId])!, text, row.id);
      }),
    ...rows.memories
      .filter(({ projectId, supersededBy }) => sees(scope, projectId) && !supersededBy)
      .map((row) => candidate("memories", row, said(row.sessionIds) ?? placed(row.projectId), row.text)),
    ...rows.entities
      .filter(({ projectId }) => sees(scope, projectId))
      .map((row) => {
        const text = `${row.name} (${row.type})${row.notes ? `: ${row.notes}` : ""}`;
        return candidate("entities", row, placed(row.projectId), text);
      }),
  ];
}

function candidate(
  kind: string,
  row: { id: string; createdAt: string; updatedAt: string; pinned?: boolean },
  session: string,
  said: string,
  turn?: string,
): Candidate {
  const { id, createdAt, updatedAt, pinned = false } = row;
  const day = kind === "entities" ? "" : dateTerms(createdAt);
  const recalled = {
    id: `${kind}/${id}`,
    date: updatedAt.slice(0, 10),
    session,
    text: normalize(said).trim(),
    turn,
  };
  return { recalled, day, updatedAt, pinned };
}
