/** Borrow, return and read documents. Documents belong to the account; sessions borrow them. */

import { distinctUntilChanged, map, type Observable } from "rxjs";
import { editRow } from "../../storage/editRow.ts";
import { matchFilenames } from "../../core/documents/filename_match.ts";
import type { DocumentDoc, VectorEmbeddingDoc } from "../../core/schema/rows.ts";
import { childIdRange, now, type AccountContext } from "../account/accountContext.ts";

/** Make the document visible in the session. */
export async function borrow(context: AccountContext, documentId: string, sessionId: string): Promise<void> {
  await editDocument(context, documentId, (row) => withSession(row, sessionId));
}

/** Borrow a document that a message mentions, and mark it as accessed. */
export async function includeDocument(
  context: AccountContext,
  documentId: string,
  sessionId: string,
): Promise<void> {
  await editDocument(context, documentId, (row) => {
    const borrowed = withSession(row, sessionId);
    return { ...borrowed, lastAccessedAt: borrowed.updatedAt };
  });
}

/** Increase the use count of each of these documents, which an answer cites. */
export async function countUse(context: AccountContext, documentIds: Iterable<string>): Promise<void> {
  for (const id of documentIds) {
    await editDocument(context, id, (row) => {
      const at = now();
      return { ...row, accessCount: row.accessCount + 1, lastAccessedAt: at, updatedAt: at };
    });
  }
}

function withSession(row: DocumentDoc, sessionId: string): DocumentDoc {
  if (row.activeSessions.includes(sessionId)) return row;
  return { ...row, activeSessions: [...row.activeSessions, sessionId], updatedAt: now() };
}

/** Remove the document from the session. It stays in the pool. */
export async function returnDocument(
  context: AccountContext,
  documentId: string,
  sessionId: string,
): Promise<void> {
  await editDocument(context, documentId, (row) => {
    if (!row.activeSessions.includes(sessionId)) return row;
    const activeSessions = row.activeSessions.filter((id) => id !== sessionId);
    return { ...row, activeSessions, updatedAt: now() };
  });
}

/** Return the documents that a message mentions and the session has not borrowed, best match first. */
export async function mentionedDocuments({ database }: AccountContext, message: string, sessionId: string) {
  const pool = (await database.documents.find().exec()).map((row) => row.toJSON() as DocumentDoc);
  return matchFilenames(
    message,
    pool.filter(({ activeSessions }) => !activeSessions.includes(sessionId)),
  );
}

/** Return the blocks of a document on this device, in order. */
export async function blocksOf({ database }: Pick<AccountContext, "database">, documentId: string) {
  const blocks = await database.vectorEmbeddings.find({ selector: { id: childIdRange(documentId) } }).exec();
  return blocks.sort((a, b) => a.block - b.block);
}

/** Return whether this device has the complete text of a document. */
export async function isWhole(
  context: Pick<AccountContext, "database">,
  { id, chunkCount }: Pick<DocumentDoc, "id" | "chunkCount">,
) {
  const chunks = (await blocksOf(context, id)).flatMap((block) => block.chunks);
  return chunkCount > 0 && chunks.length === chunkCount;
}

/** Emit the chunks of a document now and when its text changes, but not when vectors are added. */
export function chunks$(
  context: AccountContext,
  documentId: string,
): Observable<VectorEmbeddingDoc["chunks"]> {
  const selector = { id: childIdRange(documentId) };
  return context.database.vectorEmbeddings.find({ selector }).$.pipe(
    map((blocks) => blocks.map((row) => row._data).sort((a, b) => a.block - b.block)),
    distinctUntilChanged((a, b) => signature(a) === signature(b)),
    map((blocks) => blocks.flatMap(({ chunks }) => chunks as VectorEmbeddingDoc["chunks"])),
  );
}

/** Return a value that changes when chunks are added, moved or change length, but not when vectors are added. */
function signature(blocks: readonly Pick<VectorEmbeddingDoc, "block" | "chunks">[]): string {
  return blocks
    .map(({ block, chunks }) => [block, ...chunks.map(({ start, text }) => start + text.length)])
    .join();
}

async function editDocument(
  { database }: AccountContext,
  id: string,
  to: (row: DocumentDoc) => DocumentDoc,
): Promise<void> {
  const found = await database.documents.findOne(id).exec();
  if (found) await editRow<DocumentDoc>(found, to);
}
