/** A small fictional library for screenshots of the app. */

import type { NewUser } from "../sync/harness.ts";
import { harness } from "./app.ts";
import { NEW_DOCUMENT_FIELDS, NEW_SESSION_FIELDS, syncPath } from "../sync/wire.ts";

const DAY = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString();

interface Written {
  id: string;
  filename: string;
  mimeType: string;
  kilobytes: number;
  /** Days since it was added and last used. */
  days: [number, number];
  sessions: string[];
  /** One text per page, or one text for formats without pages. */
  pages: string[];
}

const PDF = "application/pdf";
const SESSIONS = [
  ["flat", "Flat in Harbour Street", 0.1],
  ["pump", "Heat pump: two offers", 1],
  ["island", "A week on the island", 3],
  ["choir", "Programme for May", 9],
] as const;

const DOCUMENTS: Written[] = [
  {
    ...{ id: "lease", filename: "Lease Harbour Street.pdf", mimeType: PDF, kilobytes: 312 },
    ...{ days: [41, 0.1], sessions: ["flat"] },
    pages: [
      "Lease between the Harbour Housing Cooperative and Ines Holm, for the flat on the second floor of Harbour Street 14: two rooms, kitchen, bath, a cellar and the use of the yard. It begins on the first of September.",
      "Rent. The rent is 940 euros a month. It is due on the third working day of the month and is paid to the account of the cooperative. Heating and water are paid in advance with 120 euros a month and settled once a year.",
      "Notice. The tenant may end the lease with three months' notice to the end of a month. Notice is given in writing; a letter that arrives by the third working day counts for that month. The cooperative's own notice grows with the years of the tenancy.",
      "Deposit. The deposit is three months' rent without heating. It is kept apart from the money of the cooperative and is paid back with interest within six months of the end of the lease.",
    ],
  },
  {
    ...{ id: "rules", filename: "House rules.pdf", mimeType: PDF, kilobytes: 86 },
    ...{ days: [41, 2], sessions: ["flat"] },
    pages: [
      "The yard belongs to everybody. Bicycles stand along the northern wall. From ten in the evening the house is quiet.",
      "Whoever moves out hands over all keys, also those of the cellar, and paints over walls that are not white.",
    ],
  },
  {
    ...{ id: "handover", filename: "Handover of the flat.docx", kilobytes: 44 },
    mimeType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ...{ days: [40, 6], sessions: ["flat"] },
    pages: [
      "Meter readings on the day of the handover: electricity 20 418, water 311. Four keys were handed over.",
    ],
  },
  {
    ...{ id: "north", filename: "Heat pump offer, Nordlys.pdf", mimeType: PDF, kilobytes: 1240 },
    ...{ days: [12, 1], sessions: ["pump"] },
    pages: [
      "Offer for an air-to-water heat pump of 8 kW with a tank of 200 litres, 14 900 euros, valid for sixty days.",
    ],
  },
  {
    ...{ id: "lake", filename: "Heat pump offer, Seewerk.pdf", mimeType: PDF, kilobytes: 980 },
    ...{ days: [11, 1], sessions: ["pump"] },
    pages: [
      "Offer for a ground source heat pump of 7 kW including two boreholes of 90 metres, 23 400 euros.",
    ],
  },
  {
    ...{ id: "ferry", filename: "Ferry timetable.html", mimeType: "text/html", kilobytes: 18 },
    ...{ days: [5, 3], sessions: ["island"] },
    pages: ["The ferry leaves the northern pier at nine and at two. On Sundays there is no boat at nine."],
  },
  {
    ...{ id: "choir", filename: "Choir programme.odt", kilobytes: 27 },
    mimeType: "application/vnd.oasis.opendocument.text",
    ...{ days: [16, 9], sessions: ["choir"] },
    pages: ["Programme for May: three madrigals, a psalm, and after the pause songs of the sea."],
  },
  {
    ...{ id: "insurance", filename: "Contents insurance.pdf", mimeType: PDF, kilobytes: 540 },
    ...{ days: [120, 96], sessions: [] },
    pages: [
      "What is insured: furniture, clothes, bicycles that are locked. Damage by water from pipes is included.",
    ],
  },
];

const FACTS = [
  { id: "f1", key: "home.address", value: "Harbour Street 14, second floor", confidence: 1, confirmed: true },
  { id: "f2", key: "home.rent", value: "940 euros a month", confidence: 0.86, sourceDocumentId: "lease" },
  { id: "f3", key: "travel.boat", value: "The afternoon boat suits best", confidence: 1, confirmed: true },
  { id: "f4", key: "phone.contract", value: "Ends in March", confidence: 0.7, sourceRemoved: true },
];

const MEMORIES = [
  { id: "m1", text: "Prefers short answers with the page they are from.", source: "user", pinned: true },
  {
    id: "m2",
    text: "The cooperative answers letters, not mails.",
    source: "extracted",
    sessionIds: ["flat"],
  },
];

async function push(user: NewUser, collection: string, rows: { id: string }[]): Promise<void> {
  const at = { createdAt: daysAgo(20), updatedAt: daysAgo(20), _deleted: false };
  const body = JSON.stringify(rows.map((row) => ({ newDocumentState: { ...at, ...row } })));
  const refused = await harness.request(user, `${syncPath(collection)}/push`, { method: "POST", body });
  expect(refused).toEqual([]);
}

/** Store the library on the server. */
export async function furnish(user: NewUser): Promise<void> {
  const sessions = SESSIONS.map(([id, title, days]) => {
    const at = daysAgo(days);
    return { id, title, mode: "analysis", ...NEW_SESSION_FIELDS, createdAt: at, updatedAt: at };
  });
  await push(user, "sessions", sessions);
  await push(
    user,
    "documents",
    DOCUMENTS.map((written) => rowOf(user, written)),
  );
  await push(user, "vectorEmbeddings", DOCUMENTS.map(blockOf));
  await push(
    user,
    "facts",
    FACTS.map((fact) => ({ sourceRemoved: false, confirmed: false, ...fact })),
  );
  await push(
    user,
    "memories",
    MEMORIES.map((memory) => ({ sessionIds: [], pinned: false, ...memory })),
  );
}

function rowOf({ userId }: NewUser, { id, filename, mimeType, kilobytes, days, sessions, pages }: Written) {
  const [added, used] = days;
  return {
    ...{ id, userId, filename, mimeType, originSessionId: sessions[0] ?? "", activeSessions: sessions },
    ...{ createdAt: daysAgo(added), lastAccessedAt: daysAgo(used), updatedAt: daysAgo(used) },
    ...{ accessCount: sessions.length, size: kilobytes * 1000, contentHash: id.padEnd(64, "0") },
    ...{ chunkCount: pages.length, status: "ready", ...NEW_DOCUMENT_FIELDS },
    ...(mimeType === PDF ? { pageCount: pages.length } : {}),
  };
}

function blockOf({ id, mimeType, pages }: Written) {
  const starts = pages.map((_, at) => pages.slice(0, at).reduce((sum, text) => sum + text.length + 2, 0));
  const chunks = pages.map((text, index) => ({
    ...{ index, start: starts[index]!, text, tokens: Math.ceil(text.length / 4) },
    ...(mimeType === PDF ? { page: index + 1 } : {}),
  }));
  return {
    id: `${id}.0`,
    documentId: id,
    block: 0,
    textHash: "",
    model: "",
    dims: 0,
    chunks,
    embedding: null,
  };
}
