/**
 * What an assistant would be told before a question, put together on this device out of what it has now: the prompt that the
 * server makes (services/chat/prompt_context.py), within the same budgets and scope. Memory is found by words here.
 */

import { entersPrompts } from "../../core/chat/answers.ts";
import { compare } from "../../lib/compareStrings.ts";
import { assemble, BUDGETS, type Prompt } from "../../core/chat/prompt.ts";
import { tokenizeQuery } from "../../core/text/tokenize.ts";
import { recall } from "../../core/memory/recall.ts";
import type { Collections, EpisodeDoc } from "../../core/schema/rows.ts";
import { home } from "../../core/memory/scope.ts";
import { onTopic } from "../../core/chat/fact_relevance.ts";
import type { Embedding } from "../library/embeddingModel.ts";
import { now, type House } from "../account/accountContext.ts";
import type { Searcher } from "../library/documentSearch.ts";

const PASSAGES = 50;
const TURNS = 200;
const RECALLED = 50;

export type PromptPreview = Pick<Prompt, "prompt" | "tokens" | "budget" | "dropped">;

/** Null: the turn is gone, or the model is not here that counts, or not any more. */
export async function context(
  house: House,
  embedding: Embedding,
  searcher: Searcher,
  episodeId: string,
): Promise<PromptPreview | null> {
  const asked = (await house.records.episodes.findOne(episodeId).exec())?.toJSON() as EpisodeDoc | undefined;
  const session = asked && (await house.records.sessions.findOne(asked.sessionId).exec());
  const embedder = session && (await embedding.ifHere());
  if (!embedder) return null;
  const { tier, limits } = house.account;
  const { userMessage: query, sessionId } = asked;
  const [facts, projects, sessions, episodes, memories, entities] = await Promise.all([
    all(house, "facts"),
    all(house, "projects"),
    all(house, "sessions"),
    all(house, "episodes"),
    all(house, "memories"),
    all(house, "entities"),
  ]);
  const isLater = (row: EpisodeDoc) => row.sessionId === sessionId && inOrder(row, asked) >= 0;
  const before = episodes.filter((row) => !isLater(row)).sort(inOrder);
  const isOver = ({ status }: EpisodeDoc) => status === "done" || status === "stopped";
  const turns = before.filter((row) => row.sessionId === sessionId && isOver(row)).slice(-TURNS);
  const rows = { projects, sessions, episodes: before.filter(entersPrompts), memories, entities };
  const searches = limits.searchesDocuments;
  const found = searches ? (await searcher.search(query, sessionId, PASSAGES)).results : [];
  let isGone = false;
  const countTokens = (texts: readonly string[]) =>
    embedder.countTokens(texts).catch((error: unknown) => {
      isGone = true;
      embedding.lost(embedder, error);
      return texts.map(() => 0);
    });
  const { prompt, tokens, budget, dropped } = await assemble(
    {
      system: "",
      mode:
        session.mode === "authoritative" && limits.authoritative && searches ? "authoritative" : "analysis",
      facts: onTopic(query, facts, tokenizeQuery),
      turns: turns.map((row) => (entersPrompts(row) ? row : { ...row, aiResponse: "" })),
      memories: recall(query, home(session.projectId), rows, now(), RECALLED),
      passages: found.map(({ documentId, block, chunkIndex, filename, text, page }) => ({
        id: `${documentId}.${block}/${chunkIndex}`,
        ...{ filename, text, page: page ?? undefined },
      })),
    },
    BUDGETS[tier],
    countTokens,
  );
  return isGone ? null : { prompt, tokens, budget, dropped };
}

function inOrder(a: EpisodeDoc, b: EpisodeDoc): number {
  return compare(a.createdAt, b.createdAt) || compare(a.id, b.id);
}

async function all<Name extends keyof Collections>({ records }: House, name: Name) {
  const rows = await records.collections[name].find().exec();
  return rows.map((row) => row.toJSON() as Collections[Name]);
}
