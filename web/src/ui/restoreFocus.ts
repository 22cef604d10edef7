/**
 * What had the focus before a sheet was opened has it again when the sheet is gone. The library sees to that for what
 * it opens and closes itself, and not for what is drawn only while it is open. Elsewhere, when what had the focus goes
 * with what it did, as a button that takes its own row away, the closest thing around it has the focus: at the top of
 * the page nobody knows where they are. A button that rests while it works loses the focus too, and has it again then.
 */

/** What lies over the page, or stands for a while in the place of what it changes. */
const SHEET = "[role=dialog], [role=menu], [role=alert], form";
/** A field of a form is worth coming back to, unless it has gone with its form. */
const OVER = "[role=dialog], [role=menu], [role=alert]";
/** What opened a sheet may be gone with it, as a button of a menu: then what had the focus before that. */
const KEPT = 8;
/** It stands below what opened it: if that is gone, what had the focus earlier is farther away than what is around. */
const BELOW = "[role=alert]";

let last: Element | undefined;
/** How many of `before` may have opened the sheet that has the last. */
let openers = 0;
/** Outside of what lies over the page, the latest first. */
let before: HTMLElement[] = [];
/** What is around the last, the closest first: what is gone tells no more where it was. */
let around: HTMLElement[] = [];

function note({ target }: FocusEvent): void {
  last = target as HTMLElement;
  openers = last.closest(SHEET) ? (last.closest(BELOW) ? 1 : KEPT) : 0;
  around = ancestors(last);
  if (last.closest(OVER)) return;
  before = [last as HTMLElement, ...before.filter((one) => one !== last && one.isConnected)].slice(0, KEPT);
}

function restore(changes: MutationRecord[]): void {
  if (!last || document.activeElement !== document.body) return;
  if (last.isConnected) {
    const rested = changes.some(({ type, target }) => type === "attributes" && target === last);
    if (rested) takesFocus(last as HTMLElement);
    return;
  }
  const opener = before.slice(0, openers).find(takesFocus);
  openers = 0;
  if (!opener) around.find((one) => one.isConnected && (takesFocus(one) || takesForOnce(one)));
}

/** One that is not shown, as in a drawer that is closed by now, does not take it. */
function takesFocus(one: HTMLElement): boolean {
  one.focus({ preventScroll: true });
  return document.activeElement === one;
}

function takesForOnce(one: HTMLElement): boolean {
  one.tabIndex = -1;
  one.addEventListener("blur", () => one.removeAttribute("tabindex"), { once: true });
  return takesFocus(one) || (one.removeAttribute("tabindex"), false);
}

function ancestors(of: Element): HTMLElement[] {
  const above = of.parentElement;
  return above && above !== document.body ? [above, ...ancestors(above)] : [];
}

export function giveFocusBack(): void {
  document.addEventListener("focusin", note);
  new MutationObserver(restore).observe(document.body, {
    ...{ childList: true, subtree: true },
    attributeFilter: ["disabled"],
  });
}
