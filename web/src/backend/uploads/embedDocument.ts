/** Embed documents on this device. The server embeds the documents that it parses. */

import type { Embedder } from "../../embedder/embedder.ts";
import { editRow } from "../../storage/editRow.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { encode } from "../../core/schema/vector_codec.ts";
import { blocksOf, isWhole } from "../library/documents.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import { now, type AccountContext } from "../account/accountContext.ts";

export type EmbedOutcome = "embedded" | "no model" | "later" | "gone";

/**
 * Embed the blocks of a document that have no vectors of the current model. Blocks are embedded one by one, so that
 * embedding can be interrupted and resumed. Return `no model` if the server has no model, `later` if the model is not
 * available now, and `gone` if the document was deleted during embedding.
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
          ? row // keep the vectors that the server has already added
          : { ...row, model: hash, dims, embedding: embedded, updatedAt: now() },
      );
    }
    done += block.chunks.length;
    onProgress(done, of);
  }
  return "embedded";
}

/**
 * Embed texts. Return null if the embedder was replaced during the call. If it failed for another reason, for instance
 * because it ran out of memory, discard it and throw the error.
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
 * Return the pending documents whose complete text is on this device. While the server is reachable, return only
 * rejected documents, because the server embeds all others.
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
