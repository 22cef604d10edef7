/** Vectors for blocks of text that were read on this device. What the server reads it embeds itself. */

import type { Embedder } from "../../embedder/embedder.ts";
import { editRow } from "../../storage/editRow.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { encode } from "../../core/schema/vector_codec.ts";
import { blocksOf, isWhole } from "../library/documents.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

export type EmbedOutcome = "embedded" | "no model" | "later" | "gone";

/**
 * Embeds what of a document has no vectors yet, block by block, so that it can stop and go on. `later`: there is a model,
 * and it could not be had now. `gone`: the document was deleted meanwhile.
 */
export async function embedDocument(
  context: AccountContext,
  embedding: EmbeddingModel,
  documentId: string,
  onProgress: (done: number, of: number) => void,
  signal: AbortSignal,
): Promise<EmbedOutcome> {
  const embedder = await embedding.embedder();
  if (!embedder) return embedding.state$.value.kind === "none" ? "no model" : "later";
  const { hash, dims } = embedder.manifest;
  const blocks = await blocksOf(context, documentId);
  const of = blocks.reduce((sum, block) => sum + block.chunks.length, 0);
  let done = 0;
  for (const block of blocks) {
    signal.throwIfAborted();
    if (block.getLatest().deleted) return "gone";
    if (block.embedding === null || block.model !== hash) {
      const texts = block.chunks.map(({ text }) => text);
      const vectors = await embedTexts(embedding, embedder, texts, signal);
      if (!vectors) return embedDocument(context, embedding, documentId, onProgress, signal);
      const embedded = encode(vectors);
      await editRow(block, (row) =>
        row.embedding !== null && row.model === hash
          ? row // the server was quicker
          : { ...row, model: hash, dims, embedding: embedded, updatedAt: now() },
      );
    }
    done += block.chunks.length;
    onProgress(done, of);
  }
  return "embedded";
}

/**
 * Null when another has taken the embedder's place. One that fails has run out of memory, or is gone: the next
 * who wants one gets another.
 */
async function embedTexts(
  embedding: EmbeddingModel,
  embedder: Embedder,
  texts: string[],
  signal: AbortSignal,
) {
  try {
    return await embedder.passages(texts, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    if (embedding.isReplaced(embedder)) return null;
    embedding.discard(embedder, error);
    throw error;
  }
}

/**
 * Documents whose embedding was broken off, as by a closed page: all their text is here, and nobody else goes on with
 * it. The server does while it answers, but for what it refused.
 */
export async function documentsToEmbed(
  context: AccountContext,
  serverAnswers: boolean,
): Promise<DocumentDoc[]> {
  const pending = await context.database.documents.find({ selector: { status: "pending" } }).exec();
  const ours = pending.filter(({ syncError }) => syncError || !serverAnswers);
  const whole = await Promise.all(ours.map((document) => isWhole(context, document)));
  return ours.filter((_, at) => whole[at]).map((row) => row.toMutableJSON() as DocumentDoc);
}
