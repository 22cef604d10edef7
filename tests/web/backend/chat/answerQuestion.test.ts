/** Questions that wait for the assistant, with the real database and over real HTTP. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { BehaviorSubject } from "rxjs";
import type {
  DeviceDatabase,
  DeviceAccount,
  DeferredQuestion,
} from "../../../../web/src/storage/deviceDatabase.ts";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { NOT_FOUND } from "../../../../web/src/core/chat/notFoundAnswer.ts";
import { QUOTES } from "../../../../web/src/core/chat/citation.ts";
import type { Task } from "../../../../web/src/core/documents/uploadTask.ts";
import { AnswerService } from "../../../../web/src/backend/chat/answerQuestion.ts";
import { borrow, includeDocument } from "../../../../web/src/backend/library/documents.ts";
import { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { DocumentSearch } from "../../../../web/src/backend/library/documentSearch.ts";
import type { TabCoordinator, SyncSummary } from "../../../../web/src/backend/sync/tabCoordinator.ts";
import { insert, openRows, T } from "../../device.ts";
import { soon } from "../../../soon.ts";

const NO_FILES = { tasks$: new BehaviorSubject<Task[]>([]), filesAdded: async () => {} };
const ACCOUNT = { userId: "u", limits: { searchesDocuments: true } } as DeviceAccount;

let server: Server;
/** Returns the HTTP status with which the assistant rejects a question, or undefined for the answer in `reply`. */
let rejection: () => number | undefined;
/** Called when the assistant receives a question, before it answers. */
let onQuestion: () => Promise<void>;
/** Called when the app asks whether an assistant is available, before the response. */
let onAvailabilityCheck: () => Promise<void>;
let calls: number;
let records: AccountDatabase;
let deferredRows: Map<string, DeferredQuestion>;
let summary$: BehaviorSubject<SyncSummary>;
let answers: AnswerService;
let reply: string;

const refusal = (code: string) => JSON.stringify({ code, detail: "It does not answer." });
const YES = 'event: delta\ndata: {"text":"Yes."}\n\nevent: done\ndata: {"finish":"stop"}\n\n';
const summary = (kind: SyncSummary["kind"]): SyncSummary => ({
  ...{ kind, waiting: 0, waitingOf: {}, syncedAt: null },
});

/** Replaces navigator.locks, which Node.js lacks: runs the work of each lock name in order, for a single tab. */
function locks() {
  const last = new Map<string, Promise<unknown>>();
  const request = (name: string, ...given: [...LockOptions[], () => Promise<unknown>]) => {
    const work = given.at(-1) as () => Promise<unknown>;
    const done = (last.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
    last.set(name, done);
    return done;
  };
  return { request };
}

beforeEach(async () => {
  [rejection, onQuestion, onAvailabilityCheck, calls] = [() => undefined, async () => {}, async () => {}, 0];
  reply = YES;
  server = createServer(async ({ url }, response) => {
    if (url === "/v1/assistant") await onAvailabilityCheck();
    if (url === "/v1/assistant") return void response.end('{"available":true,"model":"scripted"}');
    calls++;
    await onQuestion();
    const status = rejection();
    response.writeHead(status ?? 200, {});
    if (status) return void response.end(refusal(status === 429 ? "RATE_LIMITED" : "ASSISTANT"));
    response.end(reply);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  vi.stubGlobal("navigator", { locks: locks() });

  records = await openRows();
  await insert(records, "documents", { id: "d", activeSessions: ["s"] });
  const chunks = [{ index: 0, start: 0, text: "The rent is due in May.", tokens: 6 }];
  await insert(records, "vectorEmbeddings", { id: "d.0", documentId: "d", block: 0, chunks });
  deferredRows = new Map();
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const context = new AccountContext(ACCOUNT, records, deviceOf(deferredRows), { base });
  summary$ = new BehaviorSubject(summary("offline"));
  const sync = { summary$, waitUntilPushed: async () => true } as unknown as TabCoordinator;
  const searcher = new DocumentSearch(context, new EmbeddingModel(context));
  answers = new AnswerService(context, sync, async () => searcher, NO_FILES);
});

afterEach(() => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  server.close();
});

/** Return a device database in memory that stores only deferred questions. */
function deviceOf(deferredRows: Map<string, DeferredQuestion>): DeviceDatabase {
  const all = {
    first: async () => [...deferredRows.values()][0],
    toArray: async () => [...deferredRows.values()],
  };
  const later = {
    where: () => all,
    put: async (question: DeferredQuestion) => void deferredRows.set(question.episodeId, question),
    delete: async (id: string) => void deferredRows.delete(id),
  };
  const accounts = { get: async () => ACCOUNT, update: async () => 0 };
  const asked = { put: async () => {}, delete: async () => {} };
  return { accounts, later, asked } as unknown as DeviceDatabase;
}

const turn = async (id: string) => (await records.episodes.findOne(id).exec())!.toMutableJSON();
const deferredIds = () => [...deferredRows.keys()];

/** Let the test skip delays. Otherwise time passes as usual. */
function useFastTimers(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
}

/** Ask a question that is answered with quotations, and defer it until the assistant can answer. */
async function askAndDefer(message: string): Promise<string> {
  const id = await answers.ask("s", message);
  await soon(async () => expect(await turn(id)).toMatchObject({ status: "done", model: QUOTES }));
  await answers.defer(id, true);
  return id;
}

test("a deferred question is retried after each reconnection", async () => {
  const [first, second] = [await askAndDefer("When is the rent due?"), await askAndDefer("Which rent?")];
  rejection = () => 502;
  summary$.next(summary("live"));
  await soon(() => expect(calls).toBeGreaterThan(0)); // one or two requests: deferring also starts an attempt
  await soon(async () => expect(await turn(first)).toMatchObject({ status: "done", model: QUOTES }));
  expect(deferredIds()).toEqual([first, second]);
  expect(answers.assistant$.value.deferred).toEqual([first, second]);

  summary$.next(summary("offline"));
  rejection = () => undefined;
  summary$.next(summary("live"));
  await soon(() => expect(deferredIds()).toEqual([]));
  for (const id of [first, second])
    expect(await turn(id)).toMatchObject({ aiResponse: "Yes.", status: "done" });
});

test("a failed deferred question is retried while the device stays online", async () => {
  useFastTimers();
  const id = await askAndDefer("When is the rent due?");
  rejection = () => 502;
  summary$.next(summary("live"));
  await soon(() => expect(calls).toBeGreaterThan(0));
  await soon(async () => expect(await turn(id)).toMatchObject({ status: "done", model: QUOTES }));
  expect(deferredIds()).toEqual([id]);
  rejection = () => undefined;
  await soon(async () => {
    await vi.advanceTimersByTimeAsync(1_000);
    expect(deferredIds()).toEqual([]);
  });
  expect(await turn(id)).toMatchObject({ aiResponse: "Yes.", status: "done" });
});

test("deleting a turn cancels its deferred question", async () => {
  const id = await askAndDefer("When is the rent due?");
  await (await records.episodes.findOne(id).exec())!.remove();
  summary$.next(summary("live"));
  await soon(() => expect(deferredIds()).toEqual([]));
  expect(calls).toBe(0);
});

test("a deferred question keeps its quotation answer until it is answered", async () => {
  const id = await askAndDefer("When is the rent due?");
  const before = await turn(id);
  let meanwhile: object = {};
  onQuestion = async () => void (meanwhile = await turn(id));
  summary$.next(summary("live"));
  await soon(async () => expect((await turn(id)).aiResponse).toBe("Yes."));
  expect(meanwhile).toEqual(before);
  expect(await turn(id)).not.toHaveProperty("model"); // the answer is no longer a quotation answer
});

test.each([
  ["the server is offline", undefined, ""],
  ["the assistant is unavailable", 502, ""],
  ["the request is rejected", 403, "It does not answer."],
])("an assistant's answer survives a failed retry: %s", async (_, status, why) => {
  summary$.next(summary("live"));
  const id = await answers.ask("s", "When is the rent due?");
  await soon(async () => expect((await turn(id)).status).toBe("done"));
  const before = await turn(id);
  rejection = () => status;
  if (!status) summary$.next(summary("offline"));
  await answers.regenerate(id);
  await soon(() => expect(answers.assistant$.value.keptAnswers).toEqual({ [id]: why }));
  expect(await turn(id)).toEqual(before);

  rejection = () => undefined;
  summary$.next(summary("live"));
  await answers.regenerate(id);
  await soon(async () => expect((await turn(id)).updatedAt).not.toBe(before.updatedAt));
  await soon(() => expect(answers.assistant$.value.keptAnswers).toEqual({}));
});

test("pressing Stop ends an answer in every phase", async () => {
  summary$.next(summary("live"));
  let resume = () => {};
  onAvailabilityCheck = onQuestion = () => new Promise((resolve) => (resume = resolve));
  const writes = () => Object.keys(answers.drafts$.value);
  const id = await answers.ask("s", "When is the rent due?");
  expect(writes()).toEqual([id]);
  answers.stop(id);
  await soon(() => expect(writes()).toEqual([]));
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "" });

  onAvailabilityCheck = async () => resume();
  await answers.regenerate(id, "Which rent?");
  await soon(() => expect(calls).toBe(1));
  expect(await turn(id)).toMatchObject({ status: "queued", userMessage: "Which rent?" });
  answers.stop(id);
  await soon(() => expect(writes()).toEqual([]));
  expect((await turn(id)).status).toBe("stopped");

  onQuestion = async () => {};
  reply = ["It ", "goes on."].map((text) => `event: delta\ndata: ${JSON.stringify({ text })}\n\n`).join("");
  const stopping = answers.drafts$.subscribe((all) => all[id]?.aiResponse && answers.stop(id));
  await answers.regenerate(id);
  await soon(() => expect(writes()).toEqual([]));
  stopping.unsubscribe();
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "It " });
});

test("the wait for a busy assistant is shown and can be stopped", async () => {
  useFastTimers();
  summary$.next(summary("live"));
  let times = 0;
  rejection = () => (times++, 429);
  const id = await answers.ask("s", "When is the rent due?");
  await soon(() => expect(answers.drafts$.value[id]?.retryInS).toBe(5));
  await vi.advanceTimersByTimeAsync(5_000);
  await soon(() => expect(times).toBeGreaterThan(1));
  await soon(() => expect(answers.drafts$.value[id]?.retryInS).toBe(5));
  expect((await turn(id)).status).toBe("queued"); // a restarted app asks the question again
  answers.stop(id);
  await soon(() => expect(answers.drafts$.value).toEqual({}));
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "" });
});

test("a stopped or interrupted retry keeps the earlier answer", async () => {
  summary$.next(summary("live"));
  const id = await answers.ask("s", "When is the rent due?");
  await soon(async () => expect((await turn(id)).status).toBe("done"));
  const before = await turn(id);
  onQuestion = async () => answers.stop(id);
  await answers.regenerate(id);
  await soon(() => expect(answers.drafts$.value).toEqual({}));
  expect(await turn(id)).toEqual(before);
  expect(answers.assistant$.value.keptAnswers).toEqual({}); // no notice, because the user stopped the retry
  reply = 'event: delta\ndata: {"text":"No, "}\n\n';
  onQuestion = async () => {};
  await answers.regenerate(id);
  await soon(() => expect(answers.assistant$.value.keptAnswers).toHaveProperty(id));
  expect(await turn(id)).toEqual(before);
});

test("a quotation answer lists memories separately from quotations", async () => {
  await insert(records, "sessions", { id: "s", title: "Flat" });
  await insert(records, "memories", { id: "m", text: "The rent went up in spring." });
  const id = await askAndDefer("When is the rent due?");
  const { aiResponse, citations, notices } = await turn(id);
  const [fromDocuments, remembered] = aiResponse.split("**Remembered, not from your documents:**");
  expect(fromDocuments).toContain("The rent is due in May.");
  expect(remembered).toContain("The rent went up in spring.");
  expect(notices).toEqual([{ code: "words_only" }]); // because this device has no embedding model
  expect(citations).toHaveLength(1);
});

test("a document counts as used by an answer that cites it", async () => {
  summary$.next(summary("live"));
  const passage = {
    n: 1,
    documentId: "d",
    filename: "lease.txt",
    block: 0,
    chunkIndex: 0,
    text: "The rent is due in May.",
  };
  const context = JSON.stringify({ citations: [passage], model: "scripted" });
  const answering = (text: string) =>
    `event: context\ndata: ${context}\n\nevent: delta\ndata: ${JSON.stringify({ text })}\n\nevent: done\ndata: {"finish":"stop"}\n\n`;
  const uses = async () => (await records.documents.findOne("d").exec())!.accessCount;
  const done = async (id: string, text: string) =>
    soon(async () => {
      expect(await turn(id)).toMatchObject({
        status: "done",
        aiResponse: text,
        citations: [{ documentId: "d" }],
      });
      expect(answers.drafts$.value).toEqual({});
    });
  reply = answering(NOT_FOUND);
  const id = await answers.ask("s", "When is the pool open?");
  await done(id, NOT_FOUND);
  expect(await uses()).toBe(0);
  reply = answering("It is due in May.");
  await answers.regenerate(id);
  await done(id, "It is due in May.");
  expect(await uses()).toBe(0); // it does not cite the passage
  reply = answering("It is due in May [1].");
  await answers.regenerate(id);
  await done(id, "It is due in May [1].");
  expect(await uses()).toBe(1);
});

test("quoting a document counts one use per turn, borrowing it none", async () => {
  await insert(records, "documents", { id: "other" });
  const context = new AccountContext(ACCOUNT, records, deviceOf(deferredRows), { base: "" });
  await borrow(context, "other", "s");
  const uses = async (id: string) => {
    const { accessCount, lastAccessedAt } = (await records.documents.findOne(id).exec())!;
    return [accessCount, lastAccessedAt > T];
  };
  const done = async (id: string) =>
    soon(async () => {
      const turn = (await records.episodes.findOne(id).exec())!;
      expect([turn.status, answers.drafts$.value]).toEqual(["done", {}]);
      return turn;
    });
  const first = await answers.ask("s", "When is the rent due?");
  expect((await done(first)).citations.map(({ documentId }) => documentId)).toEqual(["d"]);
  expect([await uses("d"), await uses("other")]).toEqual([
    [1, true],
    [0, false],
  ]);
  await answers.regenerate(first);
  await done(first);
  expect(await uses("d")).toEqual([1, true]);
  await done(await answers.ask("s", "And what of the rent in May?"));
  expect(await uses("d")).toEqual([2, true]);
  await includeDocument(context, "other", "s");
  expect(await uses("other")).toEqual([0, true]);
});
