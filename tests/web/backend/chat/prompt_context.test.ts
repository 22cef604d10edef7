/** Preview the prompt that the assistant would receive for a question on this device. */

import type { DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import type { Embedder } from "../../../../web/src/embedder/embedder.ts";
import { NOT_FOUND } from "../../../../web/src/core/chat/notFoundAnswer.ts";
import type { PassageSearchResult } from "../../../../web/src/core/documents/passageIndex.ts";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import type { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { previewPrompt } from "../../../../web/src/backend/chat/prompt_context.ts";
import type { DocumentSearch } from "../../../../web/src/backend/library/documentSearch.ts";
import { contextOf, insert, openRows } from "../../device.ts";

const countTokens = async (texts: readonly string[]) => texts.map((text) => text.length / 4);
const embedding = {
  embedderIfDownloaded: async () => ({ countTokens }) as unknown as Embedder,
} as EmbeddingModel;
const place = { documentId: "d", block: 0, chunkIndex: 0, page: 3, section: null };
const passage = { ...place, filename: "canaries.pdf", text: "Canaries sing at dawn.", score: 1, also: [] };
const search = async (): Promise<PassageSearchResult> => ({
  results: [passage],
  searched: [],
  byMeaning: true,
});
const searcher = { search } as unknown as DocumentSearch;

let records: AccountDatabase;
beforeEach(async () => {
  records = await openRows();
  const turn = { status: "done", aiResponse: "Yes.", sessionId: "s" };
  await insert(records, "sessions", { id: "s", title: "Birds" }, { id: "other", title: "Other" });
  await insert(
    records,
    "episodes",
    { ...turn, id: "a", userMessage: "Is it yellow?" },
    { ...turn, id: "b", userMessage: "When does the canary sing?", model: "quotes" },
    { ...turn, id: "c", userMessage: "And the canary in winter?" },
    { ...turn, id: "o", userMessage: "A canary elsewhere?", sessionId: "other" },
  );
  const fact = { sourceRemoved: false, confidence: 1, confirmed: true };
  await insert(
    records,
    "facts",
    { ...fact, id: "f1", key: "canary.name", value: "Piet" },
    { ...fact, id: "f2", key: "rent", value: "940" },
  );
});

function context(searchesDocuments: boolean) {
  const promptContext = contextOf(records);
  const limits = { searchesDocuments, authoritative: true };
  const tier = searchesDocuments ? "JIGGA" : "FREE";
  promptContext.account$.next({ ...promptContext.account, tier, limits } as unknown as DeviceAccount);
  return promptContext;
}

test("the prompt preview contains facts, turns, memories and passages", async () => {
  const { prompt, budget, dropped } = (await previewPrompt(context(true), embedding, searcher, "b"))!;
  expect(prompt).toContain("- canary.name: Piet\n");
  expect(prompt).not.toContain("940");
  expect(prompt).toContain("[CONVERSATION CONTEXT]\nUser: Is it yellow?\nAssistant: Yes.\n");
  expect(prompt).toMatch(/\[MEMORY CONTEXT\]\n.*A canary elsewhere\?/u);
  expect(prompt).not.toMatch(/When does|winter/u); // the question itself and later turns are not context
  expect(prompt).toContain('Source: canaries.pdf (page 3) [1]\n"Canaries sing at dawn."');
  expect(budget.rag).toBe(6000);
  expect(Object.values(dropped).flat()).toEqual([]);
});

test("quotation and not-found answers enter no prompt", async () => {
  const excluded = [
    { model: "quotes", aiResponse: "> The canary sings in the quokka vault." },
    { model: "scripted", aiResponse: `${NOT_FOUND} Searched: quokka.pdf.` },
  ];
  const answered = { status: "done", userMessage: "Does the canary sing?" };
  await insert(
    records,
    "episodes",
    ...excluded.map((turn, n) => ({ ...answered, ...turn, id: `a${n}`, sessionId: "s" })),
    ...excluded.map((turn, n) => ({ ...answered, ...turn, id: `o${n}`, sessionId: "other" })),
  );
  const { prompt } = (await previewPrompt(context(true), embedding, searcher, "b"))!;
  expect(prompt).not.toContain("quokka");
  expect(prompt).toContain("User: Does the canary sing?\nUser: Does the canary sing?\n"); // questions of this chat
  expect(prompt).toContain("A canary elsewhere? Yes.");
});

test.each([
  [undefined, 7],
  [0.9, 5],
])("the preview omits weak passages as the server: share %s", async (promptScoreShare, passages) => {
  const made = context(true);
  made.account$.next({ ...made.account, promptScoreShare } as DeviceAccount);
  const results = Array.from({ length: 7 }, (_, n) => ({
    ...passage,
    chunkIndex: n,
    score: n < 5 ? 1 : 0.5,
  }));
  const seven = { search: async () => ({ results }) } as unknown as DocumentSearch;
  const { prompt } = (await previewPrompt(made, embedding, seven, "b"))!;
  expect(prompt.match(/Source: /gu)).toHaveLength(passages);
});

test("the FREE preview omits documents, and no model gives no preview", async () => {
  const preview = await previewPrompt(context(false), embedding, searcher, "b");
  expect(preview!.prompt).not.toContain("DOCUMENT CONTEXT");
  const none = { embedderIfDownloaded: async () => null } as unknown as EmbeddingModel;
  expect(await previewPrompt(context(true), none, searcher, "b")).toBeNull();
  expect(await previewPrompt(context(true), embedding, searcher, "gone")).toBeNull();
});

test("a model that crashes during a preview is discarded and restarted later", async () => {
  const failure = new Error("The embedder failed: out of memory");
  const dead = { countTokens: () => Promise.reject(failure) } as unknown as Embedder;
  let discarded: unknown[] = [];
  const losing = {
    embedderIfDownloaded: async () => (discarded.length ? { countTokens } : dead),
    discard: (...given: unknown[]) => ((discarded = given), null),
  } as unknown as EmbeddingModel;
  expect(await previewPrompt(context(true), losing, searcher, "b")).toBeNull();
  expect(discarded).toEqual([dead, failure]);
  expect((await previewPrompt(context(true), losing, searcher, "b"))!.prompt).toContain(
    "Canaries sing at dawn.",
  );
});
