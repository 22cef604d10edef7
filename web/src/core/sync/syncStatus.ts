/** What the sync status line shows, and which changes are announced to screen readers. */

export type SyncKind =
  | "starting" // nothing is known yet
  | "live" // the server answers
  | "offline" // it does not; tried again by itself
  | "busy" // it asked to be left alone for a while
  | "denied" // it answers, and does not accept what it is asked; tried again by itself
  | "signed-out" // it answers, but not to this browser
  | "outdated" // it wants a newer app
  | "behind" // it is older than the app
  | "full"; // this device has no room for what it sends

/** Whether it is known that nothing can be asked of the server. */
export function isAway(kind: SyncKind): boolean {
  return ["offline", "signed-out", "outdated"].includes(kind);
}

export type SyncStatus =
  | Exclude<SyncKind, "live">
  | "only-here" // documents that the server refused
  | "refused" // other rows that it refused
  | "lost" // words that gave way in a conflict, or to a delete
  | "sending"
  | "synced"
  | "never";

interface SyncFacts {
  kind: SyncKind;
  waiting: number;
  syncedAt: string | null;
  /** Collections of the rows that were refused. */
  refused: readonly string[];
  lost: number;
}

interface StatusCount {
  status: SyncStatus;
  n: number;
}

/** In order of precedence: what blocks sync, what the user has to decide, the progress. */
export function mainStatus(facts: SyncFacts): StatusCount {
  const { kind, waiting, syncedAt } = facts;
  if (kind !== "live") return { status: kind, n: waiting };
  return present(facts)[0] ?? { status: syncedAt ? "synced" : "never", n: 0 };
}

/** The statuses that apply besides the main one. The line shows them after it. */
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

/** These usually end at once, so they are announced only if they last. */
const TRANSIENT: readonly SyncStatus[] = ["sending", "never"];

/** The last announcement, and whether it is still true. */
export interface Announcement {
  status: SyncStatus;
  isCurrent: boolean;
}

/** A transient status withdraws the announcement without making one: the caller announces it if it lasts. */
export function nextAnnouncement(before: Announcement, status: SyncStatus): Announcement {
  if (status === before.status) return before;
  if (!TRANSIENT.includes(status)) return { status, isCurrent: true };
  return before.isCurrent ? { ...before, isCurrent: false } : before;
}
