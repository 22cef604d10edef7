/** Fictional chats about a flat and a choir, with their memories and entities. */

import { push } from "./accounts.ts";
import type { NewUser } from "../sync/harness.ts";
import { NEW_SESSION_FIELDS } from "../sync/wire.ts";

const DAY = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString();
const row = (id: string, days: number, more: object) => ({
  ...{ id, createdAt: daysAgo(days), updatedAt: daysAgo(days), _deleted: false },
  ...more,
});
const session = (id: string, title: string, days: number, more: object = {}) =>
  row(id, days, { title, mode: "analysis", ...NEW_SESSION_FIELDS, ...more });
export const turn = (id: string, sessionId: string, days: number, userMessage: string, aiResponse: string) =>
  row(id, days, { sessionId, userMessage, aiResponse, citations: [], status: "done" });
const memory = (id: string, days: number, text: string, more: object) =>
  row(id, days, { text, sessionIds: [], source: "extracted", pinned: false, ...more });
const entity = (id: string, type: string, name: string, notes?: string) =>
  row(id, 20, { type, name, projectId: "p-flat", ...(notes ? { notes } : {}) });
const edge = (fromId: string, label: string, toId: string) =>
  row(`${fromId}-${toId}`, 20, { fromId, label, toId });

export async function withProject(user: NewUser): Promise<void> {
  await push(
    user,
    "projects",
    row("p-flat", 40, {
      name: "Flat in Harbour Street",
      documentIds: [],
      description: "The lease, the move and the deposit.",
    }),
  );
  await push(
    user,
    "sessions",
    session("s-lease", "Notice and deposit", 21, { projectId: "p-flat" }),
    session("s-keys", "Handing over the keys", 2, { projectId: "p-flat" }),
    session("s-choir", "Programme for May", 1),
  );
  await push(
    user,
    "episodes",
    turn("e-notice", "s-lease", 21, "How much notice do I have to give?", "Three months, in writing."),
    turn("e-deposit", "s-lease", 21, "And when does the deposit come back?", "Within six months of the end."),
    turn("e-keys", "s-keys", 2, "How many keys are there?", "Four, one of them for the cellar."),
    turn("e-choir", "s-choir", 1, "Which songs come after the pause?", "Songs of the sea."),
  );
  const inFlat = { projectId: "p-flat", sessionIds: ["s-lease"] };
  await push(
    user,
    "memories",
    memory("m-old", 70, "The rent is 900 euros.", { ...inFlat, supersededBy: "m-rent" }),
    memory("m-rent", 21, "The rent is 940 euros since the new lease.", { ...inFlat, supersedes: "m-old" }),
    memory("m-letters", 68, "The cooperative answers letters, not mails.", inFlat),
    memory("m-short", 30, "Prefers short answers with the page they are from.", { source: "user" }),
  );
  await push(
    user,
    "entities",
    entity("x-ines", "person", "Ines Holm", "The tenant. Sings in the choir."),
    entity("x-bo", "person", "Bo Lind", "Looks after the house."),
    entity("x-coop", "organization", "Harbour Housing Cooperative", "Owns the house."),
    entity("x-street", "place", "Harbour Street 14"),
    entity("x-cellar", "place", "The cellar"),
    entity("x-deposit", "concept", "Deposit", "Three months' rent without heating."),
  );
  await push(
    user,
    "relationships",
    edge("x-ines", "rents from", "x-coop"),
    edge("x-ines", "lives in", "x-street"),
    edge("x-coop", "owns", "x-street"),
    edge("x-bo", "works for", "x-coop"),
    edge("x-cellar", "is part of", "x-street"),
    edge("x-coop", "holds", "x-deposit"),
  );
}

/** Return a number of different memories extracted from a session. */
const statements = (sessionId: string, count: number) =>
  Array.from({ length: count }, (_, n) =>
    memory(`m-${sessionId}-${n}`, 1, `Key number ${n} fits.`, { sessionIds: [sessionId] }),
  );

export const fillMemory = (user: NewUser, sessionId: string, count: number): Promise<void> =>
  push(user, "memories", ...statements(sessionId, count));

export const emptyMemory = (user: NewUser, sessionId: string, count: number): Promise<void> =>
  push(user, "memories", ...statements(sessionId, count).map((one) => ({ ...one, _deleted: true })));
