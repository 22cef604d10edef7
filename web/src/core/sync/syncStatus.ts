/** The content of the sync status line, and the changes that are announced to screen readers. */

export type SyncKind =
  | "starting" // the state is not known yet
  | "live" // the server responds
  | "offline" // the server is unreachable; retried automatically
  | "busy" // the server sent Retry-After
  | "denied" // the server rejects the requests; retried automatically
  | "signed-out" // the server no longer accepts this browser's sign-in
  | "outdated" // the server requires a newer app
  | "behind" // the server is older than the app
  | "full"; // the disk of this device is full

/** Return whether the server is known to accept no requests. */
export function isAway(kind: SyncKind): boolean {
  return ["offline", "signed-out", "outdated"].includes(kind);
}

export type SyncStatus =
  | Exclude<SyncKind, "live">
  | "only-here" // the server rejected documents
  | "refused" // the server rejected other rows
  | "lost" // text of this device lost a conflict with an edit or a delete
  | "sending"
  | "synced"
  | "never";

interface SyncFacts {
  kind: SyncKind;
  waiting: number;
  syncedAt: string | null;
  /** Collection of each rejected row. */
  refused: readonly string[];
  lost: number;
}

interface StatusCount {
  status: SyncStatus;
  n: number;
}

/**
 * Return the most important status. Problems of the sync come first, then rejected rows, then pending rows, then
 * conflict losers.
 */
export function mainStatus(facts: SyncFacts): StatusCount {
  const { kind, waiting, syncedAt } = facts;
  if (kind !== "live") return { status: kind, n: waiting };
  return present(facts)[0] ?? { status: syncedAt ? "synced" : "never", n: 0 };
}

/** Return the other statuses that apply. The status line shows them after the main one. */
export function otherStatuses(facts: SyncFacts): StatusCount[] {
  const first = mainStatus(facts).status;
  const isShown = ({ status }: StatusCount) =>
    status === first || (status === "sending" && facts.kind !== "live");
  return present(facts).filter((other) => !isShown(other));
}

function present({ waiting, refused, lost }: SyncFacts): StatusCount[] {
  const documents = refused.filter((collection) => collection === "documents").length;
  const all: StatusCount[] = [
    { status: "only-here", n: documents },
    { status: "refused", n: refused.length - documents },
    { status: "sending", n: waiting },
    { status: "lost", n: lost },
  ];
  return all.filter(({ n }) => n > 0);
}

/** Statuses that usually end soon. They are announced only if they last. */
const TRANSIENT: readonly SyncStatus[] = ["sending", "never"];

/** The last announcement, and whether it is still true. */
export interface Announcement {
  status: SyncStatus;
  isCurrent: boolean;
}

/**
 * Return the next announcement. A transient status only marks the last announcement as no longer true; the caller
 * announces the transient status if it lasts.
 */
export function nextAnnouncement(before: Announcement, status: SyncStatus): Announcement {
  if (status === before.status) return before;
  if (!TRANSIENT.includes(status)) return { status, isCurrent: true };
  return before.isCurrent ? { ...before, isCurrent: false } : before;
}
