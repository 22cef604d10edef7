/**
 * What had the focus before a sheet was opened has it again when the sheet is gone. The library sees to that for what
 * it opens and closes itself, and not for what is drawn only while it is open.
 */

/** What lies over the page, or stands for a while in the place of what it changes. */
const SHEET = "[role=dialog], [role=menu], form";
/** What opened a sheet may be gone with it, as a button of a menu: then what had the focus before that. */
const KEPT = 8;

let last: Element | undefined;
let isInSheet = false;
/** Outside of sheets, the latest first. */
let before: HTMLElement[] = [];

function note({ target }: FocusEvent): void {
  last = target as HTMLElement;
  isInSheet = last.closest(SHEET) !== null;
  if (isInSheet) return;
  before = [last as HTMLElement, ...before.filter((one) => one !== last && one.isConnected)].slice(0, KEPT);
}

function restore(): void {
  if (!isInSheet || last?.isConnected || document.activeElement !== document.body) return;
  isInSheet = false;
  // One that is not shown, as in a drawer that is closed by now, does not take it.
  before.find((one) => (one.focus({ preventScroll: true }), document.activeElement === one));
}

export function giveFocusBack(): void {
  document.addEventListener("focusin", note);
  new MutationObserver(restore).observe(document.body, { childList: true, subtree: true });
}
