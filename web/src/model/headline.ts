/** Which of all that could be said about sync is said in the one line. */

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

export type Said =
  | Exclude<SyncKind, "live">
  | "only-here" // documents that the server refused
  | "refused" // other rows that it refused
  | "lost" // words that gave way in a conflict, or to a delete
  | "sending"
  | "synced"
  | "never";

interface Known {
  kind: SyncKind;
  waiting: number;
  syncedAt: string | null;
  /** Collections of the rows that were refused. */
  refused: readonly string[];
  lost: number;
}

/** What hinders all comes first, then what somebody has to decide, then how it goes. */
export function headline({ kind, waiting, syncedAt, refused, lost }: Known): { said: Said; n: number } {
  if (kind !== "live") return { said: kind, n: waiting };
  const documents = refused.filter((collection) => collection === "documents").length;
  if (documents) return { said: "only-here", n: documents };
  if (refused.length) return { said: "refused", n: refused.length };
  if (waiting) return { said: "sending", n: waiting };
  if (lost) return { said: "lost", n: lost };
  return { said: syncedAt ? "synced" : "never", n: 0 };
}

/** These mostly pass at once: who listens hears of them only if they last. */
const PASSING: readonly Said[] = ["sending", "never"];

/** What was told last to who listens, and whether it still holds. */
export interface Told {
  said: Said;
  holds: boolean;
}

/** Never other than what is said. What passes takes back what was told and is itself told later, by who waits for it. */
export function told(before: Told, said: Said): Told {
  if (said === before.said) return before;
  if (!PASSING.includes(said)) return { said, holds: true };
  return before.holds ? { ...before, holds: false } : before;
}
