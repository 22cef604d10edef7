/** Whether the search model knows the language of the documents on this device. */

import { languageShare } from "../../core/text/fusion.ts";
import { isMultilingual } from "../../core/schema/modelManifest.ts";
import { childIdRange, type AccountContext } from "../account/accountContext.ts";
import { estimateTokens } from "../../core/documents/tokenEstimate.ts";

const SAMPLED_DOCUMENTS = 20;
const SAMPLED_CHUNKS = 3; // of each document

/**
 * Sample the account's passages. Return whether more than half are in languages that the model does not know. The number
 * of tokens shows whether the model knows a language. An estimated number says nothing about the language, so a passage
 * with an estimate counts as known, unless the model does not know its script.
 */
export async function isMostlyForeign({ database, account }: AccountContext): Promise<boolean> {
  if (!account.model || isMultilingual(account.model)) return false;
  const documents = await database.documents.find({ limit: SAMPLED_DOCUMENTS }).exec();
  const firstBlock = ({ id }: { id: string }) =>
    database.vectorEmbeddings.findOne({ selector: { id: childIdRange(id) }, sort: [{ id: "asc" }] }).exec();
  const blocks = await Promise.all(documents.map(firstBlock));
  const shares = blocks
    .flatMap((block) => block?.chunks.slice(0, SAMPLED_CHUNKS) ?? [])
    .map(({ text, tokens }) => languageShare(text, tokens === estimateTokens(text) ? 0 : tokens));
  return 2 * shares.filter((share) => share < 1).length > shares.length;
}
