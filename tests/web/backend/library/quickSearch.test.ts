/** Search while the user types: each row is read once, not once per letter. Uses the real database. */

import { getRxStorageMemory } from "rxdb/plugins/storage-memory";
import { changeSession } from "../../../../web/src/backend/chat/sessions.ts";
import { deleteDocuments } from "../../../../web/src/backend/deletion/deletion.ts";
import { QuickSearch } from "../../../../web/src/backend/library/quickSearch.ts";
import { counting, contextOf, insert, openRows } from "../../device.ts";

const [DOCUMENTS, SESSIONS, EPISODES] = [100, 200, 5_000];
const times = (n: number, make: (n: number) => object) => Array.from({ length: n }, (_, at) => make(at));
const day = (n: number) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString();

test("typing a query reads the rows of a large account only once", async () => {
  const counted = counting(getRxStorageMemory());
  const records = await openRows(counted.storage);
  const read = () => ["documents", "sessions", "facts", "episodes"].map((name) => counted.read(name));
  await insert(records, "documents", ...times(DOCUMENTS, (n) => ({ id: `d${n}`, filename: `Été ${n}.pdf` })));
  const sessions = times(SESSIONS, (n) => ({ id: `s${n}`, title: `Trip number ${n}`, updatedAt: day(n) }));
  await insert(records, "sessions", ...sessions);
  await insert(records, "episodes", ...times(EPISODES, (n) => ({ id: `e${n}`, sessionId: `s${n % 200}` })));
  await insert(records, "facts", { id: "f", key: "home", value: "Harbour Street" });
  const finder = new QuickSearch(records);
  const before = read();
  const since = () => read().map((count, at) => count - before[at]!);

  for (const typed of ["", "t", "tr", "tri", "trip", "trip 1", "trip 19"]) await finder.find(typed);
  expect(since()).toEqual([DOCUMENTS, SESSIONS, 1, 0]);
  const titles = (await finder.find("TRIP 19")).map(({ title }) => title);
  expect(titles).toEqual([199, 198, 197, 196, 195, 194].map((n) => `Trip number ${n}`)); // newest first
  expect((await finder.find("ete 42")).map(({ id }) => id)).toEqual(["d42"]);
  expect(await finder.find("street")).toEqual([
    { kind: "fact", id: "f", title: "home", detail: "Harbour Street" },
  ]);
  expect(since()).toEqual([DOCUMENTS, SESSIONS, 1, 0]);

  const context = contextOf(records);
  await changeSession(context, "s3", { title: "Renamed" });
  await deleteDocuments(context, ["d42"]);
  expect((await finder.find("renamed")).map(({ id }) => id)).toEqual(["s3"]);
  expect(await finder.find("ete 42")).toEqual([]);
  expect(since()[3]).toBe(0);
});

test("quick search reads the rows again after a failed read", async () => {
  const records = await openRows();
  await insert(records, "facts", { id: "f", key: "home", value: "Harbour Street" });
  const finder = new QuickSearch(records);
  const { find } = records.facts;
  records.facts.find = () => {
    throw new Error("The disk does not answer.");
  };
  await expect(finder.find("home")).rejects.toThrow("The disk does not answer.");
  records.facts.find = find;
  expect((await finder.find("home")).map(({ id }) => id)).toEqual(["f"]);
});
