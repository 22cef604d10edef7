/**
 * Recall memories on this device for a quotation answer, which needs no server. As on the server
 * (services/chat/prompt_memory.py), the scope is the session's project, or the pool if the session has no project.
 */

import { entersPrompts } from "../../core/chat/answers.ts";
import { recall } from "../../core/memory/recall.ts";
import { memorySection } from "../../core/chat/memorySection.ts";
import type { Collections, EpisodeDoc } from "../../core/schema/rows.ts";
import { partitionOf } from "../../core/memory/scope.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

const MAX_MEMORIES = 3;

/** Return matching memories as Markdown, or an empty string if there are none. */
export async function rememberedFacts(context: AccountContext, asked: EpisodeDoc): Promise<string> {
  const session = await context.database.sessions.findOne(asked.sessionId).exec();
  if (!session || session.mode === "authoritative") return ""; // this mode answers from documents only
  const [projects, sessions, episodes, memories, entities] = await Promise.all([
    all(context, "projects"),
    all(context, "sessions"),
    all(context, "episodes"),
    all(context, "memories"),
    all(context, "entities"),
  ]);
  // Exclude the turns of this chat. Also exclude quotation answers, whose text is already in the documents.
  const others = episodes.filter((row) => row.sessionId !== asked.sessionId && entersPrompts(row));
  const rows = { projects, sessions, episodes: others, memories, entities };
  return memorySection(
    asked.userMessage,
    recall(asked.userMessage, partitionOf(session.projectId), rows, now(), MAX_MEMORIES),
  );
}

async function all<Name extends keyof Collections>({ database }: AccountContext, name: Name) {
  const rows = await database.collections[name].find().exec();
  return rows.map((row) => row.toJSON() as Collections[Name]);
}
