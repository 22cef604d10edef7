/**
 * Preview the prompt of a question from the data on this device. Budgets and scope are the same as on the server
 * (services/chat/prompt_context.py), but memories are found by words only.
 */

import { entersPrompts } from "../../core/chat/answers.ts";
import { compareStrings } from "../../lib/compareStrings.ts";
import { assemble, BUDGETS, type Prompt } from "../../core/chat/prompt.ts";
import { tokenizeQuery } from "../../core/text/tokenize.ts";
import { recall } from "../../core/memory/recall.ts";
import type { Collections, EpisodeDoc } from "../../core/schema/rows.ts";
import { partitionOf } from "../../core/memory/scope.ts";
import { selectRelevant } from "../../core/chat/fact_relevance.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import { now, type AccountContext } from "../account/accountContext.ts";
import type { DocumentSearch } from "../library/documentSearch.ts";

const MAX_PASSAGES = 50;
const MAX_TURNS = 200;
const MAX_RECALLED = 50;

export type PromptPreview = Pick<Prompt, "prompt" | "tokens" | "budget" | "dropped">;

/** Build the preview. Return null if the turn was deleted, or if the model that counts tokens is not available. */
export async function previewPrompt(
  context: AccountContext,
  embedding: EmbeddingModel,
  searcher: DocumentSearch,
  episodeId: string,
): Promise<PromptPreview | null> {
  const turn = (await context.database.episodes.findOne(episodeId).exec())?.toJSON() as
    EpisodeDoc | undefined;
  const session = turn && (await context.database.sessions.findOne(turn.sessionId).exec());
  const embedder = session && (await embedding.embedderIfDownloaded());
  if (!embedder) return null;
  const { tier, limits, promptScoreShare } = context.account;
  const { userMessage: query, sessionId } = turn;
  const [facts, projects, sessions, episodes, memories, entities] = await Promise.all([
    all(context, "facts"),
    all(context, "projects"),
    all(context, "sessions"),
    all(context, "episodes"),
    all(context, "memories"),
    all(context, "entities"),
  ]);
  const isLater = (row: EpisodeDoc) => row.sessionId === sessionId && byCreation(row, turn) >= 0;
  const before = episodes.filter((row) => !isLater(row)).sort(byCreation);
  const isFinished = ({ status }: EpisodeDoc) => status === "done" || status === "stopped";
  const turns = before.filter((row) => row.sessionId === sessionId && isFinished(row)).slice(-MAX_TURNS);
  const rows = { projects, sessions, episodes: before.filter(entersPrompts), memories, entities };
  const searches = limits.searchesDocuments;
  const found = searches ? (await searcher.search(query, sessionId, MAX_PASSAGES)).results : [];
  let embedderFailed = false;
  const countTokens = (texts: readonly string[]) =>
    embedder.countTokens(texts).catch((error: unknown) => {
      embedderFailed = true;
      embedding.discard(embedder, error);
      return texts.map(() => 0);
    });
  const { prompt, tokens, budget, dropped } = await assemble(
    {
      system: "",
      mode:
        session.mode === "authoritative" && limits.authoritative && searches ? "authoritative" : "analysis",
      facts: selectRelevant(query, facts, tokenizeQuery),
      turns: turns.map((row) => (entersPrompts(row) ? row : { ...row, aiResponse: "" })),
      memories: recall(query, partitionOf(session.projectId), rows, now(), MAX_RECALLED),
      passages: found.map(({ documentId, block, chunkIndex, filename, text, score, page }) => ({
        id: `${documentId}.${block}/${chunkIndex}`,
        ...{ filename, text, score, page: page ?? undefined },
      })),
      minScoreShare: promptScoreShare,
    },
    BUDGETS[tier],
    countTokens,
  );
  return embedderFailed ? null : { prompt, tokens, budget, dropped };
}

function byCreation(a: EpisodeDoc, b: EpisodeDoc): number {
  return compareStrings(a.createdAt, b.createdAt) || compareStrings(a.id, b.id);
}

async function all<Name extends keyof Collections>({ database }: AccountContext, name: Name) {
  const rows = await database.collections[name].find().exec();
  return rows.map((row) => row.toJSON() as Collections[Name]);
}
