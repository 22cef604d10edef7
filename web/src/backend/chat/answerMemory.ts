/**
 * What this device remembers for a question, beside the quotations that answer it without the server. The scope is that
 * of the session, as on the server (services/chat/prompt_memory.py): its project, or what is in none.
 */

import { entersPrompts } from "../../core/chat/answers.ts";
import { recall } from "../../core/memory/recall.ts";
import { reminder } from "../../core/chat/memorySection.ts";
import type { Collections, EpisodeDoc } from "../../core/schema/rows.ts";
import { home } from "../../core/memory/scope.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

const MAX_RECALLED = 3;

/** As Markdown; empty: nothing that belongs to the question. */
export async function recallForAnswer(context: AccountContext, turn: EpisodeDoc): Promise<string> {
  const session = await context.database.sessions.findOne(turn.sessionId).exec();
  if (!session || session.mode === "authoritative") return ""; // that answers from documents alone
  const [projects, sessions, episodes, memories, entities] = await Promise.all([
    readAll(context, "projects"),
    readAll(context, "sessions"),
    readAll(context, "episodes"),
    readAll(context, "memories"),
    readAll(context, "entities"),
  ]);
  // This chat is not recalled to itself, and quotations are in the documents.
  const others = episodes.filter((row) => row.sessionId !== turn.sessionId && entersPrompts(row));
  const rows = { projects, sessions, episodes: others, memories, entities };
  return reminder(
    turn.userMessage,
    recall(turn.userMessage, home(session.projectId), rows, now(), MAX_RECALLED),
  );
}

async function readAll<Name extends keyof Collections>({ database: records }: AccountContext, name: Name) {
  const rows = await records.collections[name].find().exec();
  return rows.map((row) => row.toJSON() as Collections[Name]);
}
