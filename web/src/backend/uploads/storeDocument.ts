/** The text of a file that was read on this device, as a document and its blocks: all of it, or nothing. */

import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { edit } from "../../storage/editRow.ts";
import { insertAbsent } from "../../storage/insertAbsent.ts";
import { beginning } from "../../lib/truncate.ts";
import type { Chunk } from "../../core/documents/chunking.ts";
import type { DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import { deleteDocuments } from "../library/deletion.ts";
import type { Embedding } from "../library/embeddingModel.ts";
import type { House } from "../account/accountContext.ts";

const BLOCK = 16; // chunks in a block
const SECTION_MAX = 1000;

type AboutFile = Pick<DocumentDoc, "mimeType" | "contentHash" | "size" | "pageCount">;
type WireChunk = VectorEmbeddingDoc["chunks"][number];

/**
 * The document has the id of the file: one that was taken up twice is one document. What an earlier try has stored of
 * it, or the server whose answer was lost, stays as it is. What `signal` ends may have left some of it behind, for its
 * caller to bury.
 */
export async function storeText(
  house: House,
  embedding: Embedding,
  file: WaitingFile,
  about: AboutFile,
  chunks: readonly Chunk[],
  signal: AbortSignal,
): Promise<void> {
  const { documents, vectorEmbeddings } = house.records;
  const tokens = await tokensOf(embedding, chunks);
  signal.throwIfAborted();
  const counted = chunks.map((one, at) => wired(one, tokens[at]!));
  let isNew = false;
  try {
    // The document comes first: text without one nobody would see, and nobody could delete.
    isNew = (await insertAbsent(documents, [documentFor(house, file, about, chunks.length)])) > 0;
    const existing = isNew ? null : await documents.findOne(file.id).exec();
    if (existing) await edit<DocumentDoc>(existing, (row) => completed(row, about, chunks.length));
    await insertAbsent(vectorEmbeddings, blocksFor(house, file, counted));
    signal.throwIfAborted();
  } catch (error) {
    if (isNew) await deleteDocuments(house, [file.id]);
    throw error;
  }
}

/** A file that has waited was chosen then: what is forgotten meanwhile includes it. */
function begun(house: House, { addedAt }: WaitingFile, id: string) {
  return { id, createdAt: addedAt, updatedAt: house.madeAt() };
}

function documentFor(house: House, file: WaitingFile, about: AboutFile, chunkCount: number): DocumentDoc {
  const common = begun(house, file, file.id);
  return {
    ...common,
    userId: house.account.userId,
    originSessionId: file.sessionId ?? "",
    activeSessions: file.sessionId ? [file.sessionId] : [],
    accessCount: 0,
    lastAccessedAt: common.createdAt,
    filename: file.name,
    chunkCount,
    status: "pending",
    ...about,
  };
}

/** One that had failed is tried again, as the server does with a file that comes again. */
function completed(
  { statusDetail: _, ...row }: DocumentDoc,
  about: AboutFile,
  chunkCount: number,
): DocumentDoc {
  return { ...row, ...about, chunkCount, status: row.status === "failed" ? "pending" : row.status };
}

function blocksFor(house: House, file: WaitingFile, chunks: readonly WireChunk[]): VectorEmbeddingDoc[] {
  return Array.from({ length: Math.ceil(chunks.length / BLOCK) }, (_, block) => ({
    ...begun(house, file, `${file.id}.${block}`),
    documentId: file.id,
    block,
    model: "",
    dims: 0,
    chunks: chunks.slice(block * BLOCK, (block + 1) * BLOCK),
    embedding: null,
  }));
}

/** As the model counts them; without it, or when it is gone, as English has them. */
async function tokensOf(embedding: Embedding, chunks: readonly Chunk[]): Promise<number[]> {
  const embedder = await embedding.ifHere();
  const texts = chunks.map(({ text }) => text);
  const lost = (error: unknown) => embedding.lost(embedder!, error);
  const counted = await embedder?.countTokens(texts).catch(lost);
  return counted ?? texts.map((text) => Math.ceil(text.length / 4));
}

function wired({ index, start, text, page, section }: Chunk, tokens: number): WireChunk {
  return {
    index,
    start,
    text,
    tokens,
    ...(page === undefined ? {} : { page }),
    ...(section === undefined ? {} : { section: beginning(section, SECTION_MAX) }),
  };
}
