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
import { QUOTES } from "../../../../web/src/core/chat/citation.ts";
import type { Task } from "../../../../web/src/core/documents/uploadTask.ts";
import { AnswerService } from "../../../../web/src/backend/chat/answerQuestion.ts";
import { borrow, includeDocument } from "../../../../web/src/backend/library/documents.ts";
import { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { DocumentSearch } from "../../../../web/src/backend/library/documentSearch.ts";
import type { SyncCoordinator, SyncSummary } from "../../../../web/src/backend/sync/syncCoordinator.ts";
import { insert, openRows, T } from "../../device.ts";
import { soon } from "../../../soon.ts";

const NO_FILES = { tasks$: new BehaviorSubject<Task[]>([]), filesAdded: async () => {} };
const ACCOUNT = { userId: "u", limits: { searchesDocuments: true } } as DeviceAccount;

let server: Server;
/** How the assistant answers each question; undefined: it says "Yes." */
let refuses: () => number | undefined;
/** Called when it is asked, before it answers. */
let whenAsked: () => Promise<void>;
/** Called when it is looked whether there is one, before that is said. */
let whenLooked: () => Promise<void>;
let asked: number;
let records: AccountDatabase;
let wishes: Map<string, DeferredQuestion>;
let summary$: BehaviorSubject<SyncSummary>;
let asking: AnswerService;
let says: string;

const refusal = (code: string) => JSON.stringify({ code, detail: "It does not answer." });
const YES = 'event: delta\ndata: {"text":"Yes."}\n\nevent: done\ndata: {"finish":"stop"}\n\n';
const summary = (kind: SyncSummary["kind"]): SyncSummary => ({
  ...{ kind, waiting: 0, waitingOf: {}, syncedAt: null },
});

/** Node has no locks; one tab needs none but those that make it wait for itself. */
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
  [refuses, whenAsked, whenLooked, asked] = [() => undefined, async () => {}, async () => {}, 0];
  says = YES;
  server = createServer(async ({ url }, response) => {
    if (url === "/v1/assistant") await whenLooked();
    if (url === "/v1/assistant") return void response.end('{"available":true,"model":"scripted"}');
    asked++;
    await whenAsked();
    const status = refuses();
    response.writeHead(status ?? 200, {});
    if (status) return void response.end(refusal(status === 429 ? "RATE_LIMITED" : "ASSISTANT"));
    response.end(says);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  vi.stubGlobal("navigator", { locks: locks() });

  records = await openRows();
  await insert(records, "documents", { id: "d", activeSessions: ["s"] });
  const chunks = [{ index: 0, start: 0, text: "The rent is due in May.", tokens: 6 }];
  await insert(records, "vectorEmbeddings", { id: "d.0", documentId: "d", block: 0, chunks });
  wishes = new Map();
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const context = new AccountContext(ACCOUNT, records, deviceOf(wishes), { base });
  summary$ = new BehaviorSubject(summary("offline"));
  const sync = { summary$, waitUntilPushed: async () => true } as unknown as SyncCoordinator;
  const searcher = new DocumentSearch(context, new EmbeddingModel(context));
  asking = new AnswerService(context, sync, async () => searcher, NO_FILES);
});

afterEach(() => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  server.close();
});

/** What the app keeps beside the rows, in memory. */
function deviceOf(wishes: Map<string, DeferredQuestion>): DeviceDatabase {
  const all = { first: async () => [...wishes.values()][0], toArray: async () => [...wishes.values()] };
  const later = {
    where: () => all,
    put: async (wish: DeferredQuestion) => void wishes.set(wish.episodeId, wish),
    delete: async (id: string) => void wishes.delete(id),
  };
  const accounts = { get: async () => ACCOUNT, update: async () => 0 };
  const asked = { put: async () => {}, delete: async () => {} };
  return { accounts, later, asked } as unknown as DeviceDatabase;
}

const turn = async (id: string) => (await records.episodes.findOne(id).exec())!.toMutableJSON();
const wished = () => [...wishes.keys()];

/** A turn that was answered by quotations, and shall be answered by the assistant. */
async function quoted(message: string): Promise<string> {
  const id = await asking.ask("s", message);
  await soon(async () => expect(await turn(id)).toMatchObject({ status: "done", model: QUOTES }));
  await asking.defer(id, true);
  return id;
}

test("a deferred question is retried after each reconnection", async () => {
  const [first, second] = [await quoted("When is the rent due?"), await quoted("Which rent?")];
  refuses = () => 502;
  summary$.next(summary("live"));
  await soon(() => expect(asked).toBeGreaterThan(0)); // once, or twice: the wish itself asks, too
  await soon(async () => expect(await turn(first)).toMatchObject({ status: "done", model: QUOTES }));
  expect(wished()).toEqual([first, second]);
  expect(asking.assistant$.value.deferred).toEqual([first, second]);

  summary$.next(summary("offline"));
  refuses = () => undefined;
  summary$.next(summary("live"));
  await soon(() => expect(wished()).toEqual([]));
  for (const id of [first, second])
    expect(await turn(id)).toMatchObject({ aiResponse: "Yes.", status: "done" });
});

test("a failed deferred question is retried while the device stays online", async () => {
  const id = await quoted("When is the rent due?");
  refuses = () => 502;
  summary$.next(summary("live"));
  await soon(() => expect(asked).toBeGreaterThan(0));
  await soon(async () => expect(await turn(id)).toMatchObject({ status: "done", model: QUOTES }));
  expect(wished()).toEqual([id]);
  refuses = () => undefined;
  await soon(() => expect(wished()).toEqual([]));
  expect(await turn(id)).toMatchObject({ aiResponse: "Yes.", status: "done" });
});

test("deleting a turn cancels its deferred question", async () => {
  const id = await quoted("When is the rent due?");
  await (await records.episodes.findOne(id).exec())!.remove();
  summary$.next(summary("live"));
  await soon(() => expect(wished()).toEqual([]));
  expect(asked).toBe(0);
});

test("a deferred question keeps its quotation answer until it is answered", async () => {
  const id = await quoted("When is the rent due?");
  const before = await turn(id);
  let meanwhile: object = {};
  whenAsked = async () => void (meanwhile = await turn(id));
  summary$.next(summary("live"));
  await soon(async () => expect((await turn(id)).aiResponse).toBe("Yes."));
  expect(meanwhile).toEqual(before);
  expect(await turn(id)).not.toHaveProperty("model"); // it is no quotation any more
});

test.each([
  ["the server is offline", undefined, ""],
  ["the assistant is unavailable", 502, ""],
  ["the request is rejected", 403, "It does not answer."],
])("an assistant's answer survives a failed retry: %s", async (_, status, why) => {
  summary$.next(summary("live"));
  const id = await asking.ask("s", "When is the rent due?");
  await soon(async () => expect((await turn(id)).status).toBe("done"));
  const before = await turn(id);
  refuses = () => status;
  if (!status) summary$.next(summary("offline"));
  await asking.regenerate(id);
  await soon(() => expect(asking.assistant$.value.keptAnswers).toEqual({ [id]: why }));
  expect(await turn(id)).toEqual(before);

  refuses = () => undefined;
  summary$.next(summary("live"));
  await asking.regenerate(id);
  await soon(async () => expect((await turn(id)).updatedAt).not.toBe(before.updatedAt));
  await soon(() => expect(asking.assistant$.value.keptAnswers).toEqual({}));
});

test("Stop works in every phase of answering", async () => {
  summary$.next(summary("live"));
  let goOn = () => {};
  whenLooked = whenAsked = () => new Promise((resolve) => (goOn = resolve));
  const writes = () => Object.keys(asking.drafts$.value);
  const id = await asking.ask("s", "When is the rent due?");
  expect(writes()).toEqual([id]);
  asking.stop(id);
  await soon(() => expect(writes()).toEqual([]));
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "" });

  whenLooked = async () => goOn();
  await asking.regenerate(id, "Which rent?");
  await soon(() => expect(asked).toBe(1));
  expect(await turn(id)).toMatchObject({ status: "queued", userMessage: "Which rent?" });
  asking.stop(id);
  await soon(() => expect(writes()).toEqual([]));
  expect((await turn(id)).status).toBe("stopped");

  whenAsked = async () => {};
  says = ["It ", "goes on."].map((text) => `event: delta\ndata: ${JSON.stringify({ text })}\n\n`).join("");
  const stopping = asking.drafts$.subscribe((all) => all[id]?.aiResponse && asking.stop(id));
  await asking.regenerate(id);
  await soon(() => expect(writes()).toEqual([]));
  stopping.unsubscribe();
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "It " });
});

test("the wait for a busy assistant is shown and can be stopped", async () => {
  summary$.next(summary("live"));
  let times = 0;
  refuses = () => (times++, 429);
  const id = await asking.ask("s", "When is the rent due?");
  await soon(() => expect(asking.drafts$.value[id]?.retryInS).toBe(5));
  await vi.waitFor(() => expect(times).toBeGreaterThan(1), 20_000);
  await soon(() => expect(asking.drafts$.value[id]?.retryInS).toBe(5));
  expect((await turn(id)).status).toBe("queued"); // were the app closed now, it would be asked again
  asking.stop(id);
  await soon(() => expect(asking.drafts$.value).toEqual({}));
  expect(await turn(id)).toMatchObject({ status: "stopped", aiResponse: "" });
});

test("a stopped or interrupted retry keeps the earlier answer", async () => {
  summary$.next(summary("live"));
  const id = await asking.ask("s", "When is the rent due?");
  await soon(async () => expect((await turn(id)).status).toBe("done"));
  const before = await turn(id);
  whenAsked = async () => asking.stop(id);
  await asking.regenerate(id);
  await soon(() => expect(asking.drafts$.value).toEqual({}));
  expect(await turn(id)).toEqual(before);
  expect(asking.assistant$.value.keptAnswers).toEqual({}); // who stopped it knows
  says = 'event: delta\ndata: {"text":"No, "}\n\n';
  whenAsked = async () => {};
  await asking.regenerate(id);
  await soon(() => expect(asking.assistant$.value.keptAnswers).toHaveProperty(id));
  expect(await turn(id)).toEqual(before);
});

test("a quotation answer lists memories separately from quotations", async () => {
  await insert(records, "sessions", { id: "s", title: "Flat" });
  await insert(records, "memories", { id: "m", text: "The rent went up in spring." });
  const id = await quoted("When is the rent due?");
  const { aiResponse, citations } = await turn(id);
  const [fromDocuments, remembered] = aiResponse.split("**Remembered, not from your documents:**");
  expect(fromDocuments).toContain("The rent is due in May.");
  expect(remembered).toContain("The rent went up in spring.");
  expect(fromDocuments).toContain("Searched by words alone"); // this device has no model
  expect(citations).toHaveLength(1);
});

test("quoting a document counts one use per turn, borrowing it none", async () => {
  await insert(records, "documents", { id: "other" });
  const context = new AccountContext(ACCOUNT, records, deviceOf(wishes), { base: "" });
  await borrow(context, "other", "s");
  const uses = async (id: string) => {
    const { accessCount, lastAccessedAt } = (await records.documents.findOne(id).exec())!;
    return [accessCount, lastAccessedAt > T];
  };
  const done = async (id: string) =>
    soon(async () => {
      const turn = (await records.episodes.findOne(id).exec())!;
      expect([turn.status, asking.drafts$.value]).toEqual(["done", {}]);
      return turn;
    });
  const first = await asking.ask("s", "When is the rent due?");
  expect((await done(first)).citations.map(({ documentId }) => documentId)).toEqual(["d"]);
  expect([await uses("d"), await uses("other")]).toEqual([
    [1, true],
    [0, false],
  ]);
  await asking.regenerate(first);
  await done(first);
  expect(await uses("d")).toEqual([1, true]);
  await done(await asking.ask("s", "And what of the rent in May?"));
  expect(await uses("d")).toEqual([2, true]);
  await includeDocument(context, "other", "s");
  expect(await uses("other")).toEqual([0, true]);
});
