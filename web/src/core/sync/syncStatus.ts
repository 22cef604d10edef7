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

interface Headline {
  said: Said;
  n: number;
}

/** What hinders all comes first, with what it holds up, then what somebody has to decide, then how it goes. */
export function headline(known: Known): Headline {
  const { kind, waiting, syncedAt } = known;
  if (kind !== "live") return { said: kind, n: waiting };
  return present(known)[0] ?? { said: syncedAt ? "synced" : "never", n: 0 };
}

/** What the headline would hide: the line says it, too. */
export function besides(known: Known): Headline[] {
  const first = headline(known).said;
  const isTold = ({ said }: Headline) => said === first || (said === "sending" && known.kind !== "live");
  return present(known).filter((one) => !isTold(one));
}

function present({ waiting, refused, lost }: Known): Headline[] {
  const documents = refused.filter((collection) => collection === "documents").length;
  const all: Headline[] = [
    { said: "only-here", n: documents },
    { said: "refused", n: refused.length - documents },
    { said: "sending", n: waiting },
    { said: "lost", n: lost },
  ];
  return all.filter(({ n }) => n > 0);
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
