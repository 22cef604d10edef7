/** What the server refused, as the list of it: with the real database. */

import type { Device, KnownAccount } from "../../web/src/engines/device/device.ts";
import { House } from "../../web/src/services/house.ts";
import { Refused } from "../../web/src/services/refused.ts";
import { soon } from "../soon.ts";
import { insert, openRows } from "./device.ts";

const syncError = { code: "DOCUMENT_LIMIT", message: "Full.", at: "2026-01-02T00:00:00.000Z" };
const refusedOn = (day: number, at = syncError.at) => ({
  ...{ id: `d${day}`, filename: `${day}.txt`, createdAt: `2026-01-0${day}T00:00:00.000Z` },
  syncError: { ...syncError, at },
});

test("the newest of what was refused at one time stands first, and goes up last when all is tried again", async () => {
  const records = await openRows();
  const late = refusedOn(1, "2026-01-03T00:00:00.000Z");
  await insert(records, "documents", late, refusedOn(2), refusedOn(4), refusedOn(3));
  const house = new House({ userId: "u" } as KnownAccount, records, {} as Device, { base: "" });
  const refused = new Refused(house);
  await soon(() => expect(refused.rows$.value.map(({ id }) => id)).toEqual(["d1", "d4", "d3", "d2"]));
  const tried: string[] = [];
  records.documents.$.subscribe(({ documentId }) => tried.push(documentId));
  await refused.tryAllAgain();
  expect(tried).toEqual(["d2", "d3", "d4", "d1"]);
  await soon(() => expect(refused.rows$.value).toEqual([]));
});
