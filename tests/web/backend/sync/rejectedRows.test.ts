/** The list of rows that the server rejected, with the real database. */

import type { DeviceDatabase, DeviceAccount } from "../../../../web/src/storage/deviceDatabase.ts";
import { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { RejectedRows } from "../../../../web/src/backend/sync/rejectedRows.ts";
import { soon } from "../../../soon.ts";
import { contextOf, insert, openRows, stored } from "../../device.ts";

const syncError = { code: "DOCUMENT_LIMIT", message: "Full.", at: "2026-01-02T00:00:00.000Z" };
const refusedOn = (day: number, at = syncError.at) => ({
  ...{ id: `d${day}`, filename: `${day}.txt`, createdAt: `2026-01-0${day}T00:00:00.000Z` },
  syncError: { ...syncError, at },
});

test("the newest rejected row is listed first and retried last", async () => {
  const records = await openRows();
  const late = refusedOn(1, "2026-01-03T00:00:00.000Z");
  await insert(records, "documents", late, refusedOn(2), refusedOn(4), refusedOn(3));
  const context = new AccountContext({ userId: "u" } as DeviceAccount, records, {} as DeviceDatabase, {
    base: "",
  });
  const refused = new RejectedRows(context);
  await soon(() => expect(refused.rows$.value.map(({ id }) => id)).toEqual(["d1", "d4", "d3", "d2"]));
  const retriedIds: string[] = [];
  records.documents.$.subscribe(({ documentId }) => retriedIds.push(documentId));
  await refused.retryAll();
  expect(retriedIds).toEqual(["d2", "d3", "d4", "d1"]);
  await soon(() => expect(refused.rows$.value).toEqual([]));
});

test("retrying a FORGOTTEN row gives its dependents new creation times", async () => {
  const records = await openRows();
  const forgottenAt = "2026-01-05T00:00:00.000Z";
  const late = "2999-01-01T00:00:00.000Z";
  const mark = { syncError: { ...syncError, code: "FORGOTTEN" } };
  await insert(records, "projects", { id: "p", ...mark });
  await insert(records, "sessions", { id: "s", projectId: "p", ...mark }, { id: "other", ...mark });
  await insert(
    records,
    "episodes",
    { id: "e", sessionId: "s", ...mark },
    { id: "f", sessionId: "other", ...mark },
  );
  await insert(records, "documents", { id: "d", ...mark });
  await insert(
    records,
    "vectorEmbeddings",
    ...[{ id: "d.0", ...mark }, { id: "d.1" }, { id: "d.2", createdAt: late }].map((block, at) => ({
      documentId: "d",
      block: at,
      ...block,
    })),
  );
  await insert(records, "entities", { id: "a", projectId: "p", ...mark }, { id: "b", projectId: "p" });
  await insert(records, "relationships", { id: "r", fromId: "a", toId: "b" });
  const context = contextOf(records);
  context.account$.next({ ...context.account, forgottenAt });
  const refused = new RejectedRows(context);
  await refused.retry({ collection: "documents", id: "d" });
  await refused.retry({ collection: "projects", id: "p" });
  await refused.retry({ collection: "sessions", id: "s" });

  const renewed = async (name: string, id: string) => {
    const { createdAt, syncError } = (await stored(records, name, id)) as any;
    return createdAt > forgottenAt && createdAt !== late && !syncError;
  };
  const keys =
    "documents/d vectorEmbeddings/d.0 vectorEmbeddings/d.1 projects/p sessions/s episodes/e entities/a entities/b";
  for (const key of [...keys.split(" "), "relationships/r"]) {
    const [name, id] = key.split("/") as [string, string];
    expect([key, await renewed(name, id)]).toEqual([key, true]);
  }
  expect(await stored(records, "vectorEmbeddings", "d.2")).toMatchObject({ createdAt: late });
  expect(await renewed("episodes", "f")).toBe(false);
  await soon(() => expect(refused.rows$.value.map(({ id }) => id).sort()).toEqual(["f", "other"]));
});
