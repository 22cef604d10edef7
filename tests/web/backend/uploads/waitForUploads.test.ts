/** Questions about files that are still uploading, with the real uploads, answers and database, no server. */

import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { notice } from "../../../../web/src/core/chat/notices.ts";
import { waitForUploads } from "../../../../web/src/backend/uploads/waitForUploads.ts";
import { AnswerService } from "../../../../web/src/backend/chat/answerQuestion.ts";
import { EmbeddingModel } from "../../../../web/src/backend/library/embeddingModel.ts";
import { DocumentSearch } from "../../../../web/src/backend/library/documentSearch.ts";
import { insert, openRows, row } from "../../device.ts";
import { answering, openUploads, withBrowserParts, type UploadHarness } from "../../uploads.ts";
import { soon } from "../../../soon.ts";

const LEASE = new File(["The rent of the flat is 940 euros."], "lease.txt");
/** Only the server reads UTF-32. */
const MINUTES = new File([Buffer.from("fffe00004100000042000000", "hex")], "minutes.txt");

let records: AccountDatabase;
beforeAll(withBrowserParts);
beforeEach(async () => void (records = await openRows()));

interface Conversation extends UploadHarness {
  answers: AnswerService;
}

function begin(base?: string): Conversation {
  const harness = openUploads(records, base === undefined ? {} : { base });
  const searcher = new DocumentSearch(harness.context, new EmbeddingModel(harness.context));
  const answers = new AnswerService(harness.context, harness.sync, async () => searcher, harness.uploads);
  harness.hear(base === undefined ? "offline" : "live");
  return { ...harness, answers };
}

const turn = async (id: string) => (await records.episodes.findOne(id).exec())!.toMutableJSON();
const answered = (id: string) =>
  soon(async () => {
    const row = await turn(id);
    expect(row.status).not.toBe("queued");
    return row;
  });
/** Cancel all uploads, which would otherwise use the closed database after the test. */
const cancelAll = ({ uploads }: UploadHarness) =>
  Promise.all(uploads.tasks$.value.map(({ id }) => uploads.cancel(id)));
const awaitedFiles = ({ answers }: Conversation, id: string) => answers.drafts$.value[id]?.pendingFiles;

/** Start a server without an assistant that accepts uploads but never responds to them. */
const silentServer = () =>
  answering(({ url }, response) => {
    if (url === "/v1/assistant") response.end('{"available":false,"model":null}');
  });

test("a question asked during an upload is answered from the file", async () => {
  const { answers, uploads } = begin();
  void uploads.add([LEASE], "s");
  const row = await answered(await answers.ask("s", "How much is the rent?"));
  expect(row).toMatchObject({ status: "done", citations: [{ filename: "lease.txt" }] });
  expect(row.aiResponse).toContain("940 euros");
  expect(row.notices).not.toContainEqual(notice("files_not_read", ["lease.txt"])); // the answer uses it
});

test("a question waits only for its chat's files", async () => {
  const conversation = begin(await silentServer());
  const { answers, uploads } = conversation;
  await uploads.add([LEASE, MINUTES], "s");
  const other = await answers.ask("other", "How much is the rent?");
  expect(await answered(other)).toMatchObject({ aiResponse: "", notices: [notice("no_documents")] });
  const id = await answers.ask("s", "How much is the rent?");
  await soon(() => expect(awaitedFiles(conversation, id)).toEqual(["lease.txt", "minutes.txt"]));
  expect(await turn(id)).toMatchObject({ status: "queued", aiResponse: "" });
  answers.answerWithoutWaiting(id);
  const notices = [notice("no_documents"), notice("files_not_read", ["lease.txt", "minutes.txt"])];
  expect(await answered(id)).toMatchObject({ aiResponse: "", notices });
  await cancelAll(conversation);
});

test("an answer names the canceled file that it does not use", async () => {
  const conversation = begin(await silentServer());
  const { answers, uploads } = conversation;
  await uploads.add([LEASE], "s");
  const id = await answers.ask("s", "How much is the rent?");
  await soon(() => expect(awaitedFiles(conversation, id)).toEqual(["lease.txt"]));
  await cancelAll(conversation);
  expect((await answered(id)).notices).toContainEqual(notice("files_not_read", ["lease.txt"]));
});

test("a question does not wait for failed or server-only files", async () => {
  const { answers, uploads } = begin();
  void uploads.add([MINUTES, new File([""], "empty.txt")], "s");
  const { notices } = await answered(await answers.ask("s", "What was agreed?"));
  expect(notices).toContainEqual(notice("files_not_read", ["minutes.txt", "empty.txt"]));
});

test("Stop ends the wait for an upload and removes the draft", async () => {
  const conversation = begin(await silentServer());
  const { answers, uploads } = conversation;
  await uploads.add([LEASE], "s");
  const id = await answers.ask("s", "How much is the rent?");
  await soon(() => expect(awaitedFiles(conversation, id)).toEqual(["lease.txt"]));
  answers.stop(id);
  expect((await answered(id)).status).toBe("stopped");
  await soon(() => expect(answers.drafts$.value).toEqual({}));
  await cancelAll(conversation);
  await soon(() => expect(answers.drafts$.value).toEqual({}));
});

test("a question waits until the uploaded document has synced back", async () => {
  const fields = { activeSessions: ["s"], filename: "lease.txt" };
  const base = await answering(({ url }, response) => {
    if (url === "/v1/assistant") response.end('{"available":false,"model":null}');
    else if (url === "/v1/documents")
      response.end(JSON.stringify({ document: row("documents", { id: "d", ...fields }), existing: true }));
  });
  const conversation = begin(base);
  const { answers, uploads } = conversation;
  await uploads.add([LEASE], "s");
  const id = await answers.ask("s", "What is a secret?");
  await soon(() => expect(uploads.tasks$.value[0]!.stage).toBe("done"));
  await insert(records, "documents", { id: "d", ...fields, activeSessions: [] });
  await insert(records, "vectorEmbeddings", { id: "d.0", documentId: "d", block: 0 });
  expect((await turn(id)).status).toBe("queued");
  await (await records.documents.findOne("d").exec())!.incrementalPatch(fields);
  expect(await answered(id)).toMatchObject({ citations: [{ filename: "lease.txt" }] });
});

test("waiting for an upload that gets no response times out", async () => {
  const conversation = begin(await silentServer());
  const { context, uploads } = conversation;
  await uploads.add([LEASE], "s");
  const missing = await waitForUploads(context, uploads, "s", () => {}, new AbortController().signal, 300);
  expect(missing).toMatchObject([{ name: "lease.txt" }]);
  await cancelAll(conversation);
});

test("a question that waits for an upload renews its timestamp", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const conversation = begin(await silentServer());
  const { answers, uploads } = conversation;
  await uploads.add([LEASE], "s");
  const id = await answers.ask("s", "How much is the rent?");
  await soon(() => expect(awaitedFiles(conversation, id)).toEqual(["lease.txt"]));
  const { updatedAt } = await turn(id);
  vi.advanceTimersByTime(30_000);
  await soon(async () => expect((await turn(id)).updatedAt > updatedAt).toBe(true));
  await cancelAll(conversation);
  await answered(id);
});
