/** Store the text of a file as a document and its blocks, all or nothing. */

import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { editRow } from "../../storage/editRow.ts";
import { insertAbsent } from "../../storage/insertAbsent.ts";
import { truncate } from "../../lib/truncate.ts";
import type { Chunk } from "../../core/documents/chunking.ts";
import { estimateTokens } from "../../core/documents/tokenEstimate.ts";
import type { DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import { deleteDocuments } from "../deletion/deletion.ts";
import type { EmbeddingModel } from "../library/embeddingModel.ts";
import type { AccountContext } from "../account/accountContext.ts";

const CHUNKS_PER_BLOCK = 16;
const MAX_SECTION = 1000;

type FileFacts = Pick<DocumentDoc, "mimeType" | "contentHash" | "textHash" | "size" | "pageCount">;
type WireChunk = VectorEmbeddingDoc["chunks"][number];

/**
 * Store a document under the id of its file, so that a repeated attempt creates no second document. Rows that an
 * earlier attempt or the server has stored are kept. If `signal` aborts, the caller deletes the rows that were stored.
 */
export async function storeText(
  context: AccountContext,
  embedding: EmbeddingModel,
  file: WaitingFile,
  about: FileFacts,
  chunks: readonly Chunk[],
  signal: AbortSignal,
): Promise<void> {
  const { documents, vectorEmbeddings } = context.database;
  const tokens = await countTokens(embedding, chunks);
  signal.throwIfAborted();
  const counted = chunks.map((one, at) => toStoredChunk(one, tokens[at]!));
  let isNew = false;
  try {
    // Insert the document first: blocks without a document would be invisible and could not be deleted.
    isNew = (await insertAbsent(documents, [newDocument(context, file, about, chunks.length)])) > 0;
    const existing = isNew ? null : await documents.findOne(file.id).exec();
    if (existing) await editRow<DocumentDoc>(existing, (row) => withReadText(row, about, chunks.length));
    await insertAbsent(vectorEmbeddings, newBlocks(context, file, about.textHash, counted));
    signal.throwIfAborted();
  } catch (error) {
    if (isNew) await deleteDocuments(context, [file.id]);
    throw error;
  }
}

/**
 * Return the fields that every new row starts with. `createdAt` is the time when the user added the file, so that a
 * later "forget everything" deletes the row.
 */
function newUploadedRow(context: AccountContext, { addedAt }: WaitingFile, id: string) {
  return { id, createdAt: addedAt, updatedAt: context.creationTime() };
}

function newDocument(
  context: AccountContext,
  file: WaitingFile,
  about: FileFacts,
  chunkCount: number,
): DocumentDoc {
  const common = newUploadedRow(context, file, file.id);
  return {
    ...common,
    userId: context.account.userId,
    originSessionId: file.sessionId ?? "",
    activeSessions: file.sessionId ? [file.sessionId] : [],
    accessCount: 0,
    lastAccessedAt: common.createdAt,
    filename: file.name,
    chunkCount,
    status: "pending",
    ...{ original: "none", fileRevision: 1 },
    ...about,
  };
}

/**
 * Update a document for its newly parsed file. A failed document becomes pending, as on the server after a repeated
 * upload.
 */
function withReadText(
  { statusDetail: _, ...row }: DocumentDoc,
  about: FileFacts,
  chunkCount: number,
): DocumentDoc {
  return { ...row, ...about, chunkCount, status: row.status === "failed" ? "pending" : row.status };
}

function newBlocks(
  context: AccountContext,
  file: WaitingFile,
  textHash: string,
  chunks: readonly WireChunk[],
): VectorEmbeddingDoc[] {
  return Array.from({ length: Math.ceil(chunks.length / CHUNKS_PER_BLOCK) }, (_, block) => ({
    ...newUploadedRow(context, file, `${file.id}.${block}`),
    documentId: file.id,
    block,
    textHash,
    model: "",
    dims: 0,
    chunks: chunks.slice(block * CHUNKS_PER_BLOCK, (block + 1) * CHUNKS_PER_BLOCK),
    embedding: null,
  }));
}

/** Return the token count of each chunk. Estimate it if the model is not available. */
async function countTokens(embedding: EmbeddingModel, chunks: readonly Chunk[]): Promise<number[]> {
  const embedder = await embedding.embedderIfDownloaded();
  const texts = chunks.map(({ text }) => text);
  const lost = (error: unknown) => embedding.discard(embedder!, error);
  const counted = await embedder?.countTokens(texts).catch(lost);
  return counted ?? texts.map(estimateTokens);
}

function toStoredChunk({ index, start, text, page, section }: Chunk, tokens: number): WireChunk {
  return {
    index,
    start,
    text,
    tokens,
    ...(page === undefined ? {} : { page }),
    ...(section === undefined ? {} : { section: truncate(section, MAX_SECTION) }),
  };
}
