/**
 * Restore the focus when the element that has it is removed or disabled. When an overlay or a form closes,
 * its opener gets the focus. The component library does this only for overlays that it opens and closes
 * itself, and not for those that are rendered only while they are open. In other cases, such as a button that
 * deletes its own row, the closest focusable ancestor gets the focus; the browser would move it to the top of
 * the page. A button that was disabled during its action gets the focus back when it is enabled.
 */

const OVERLAY = "[role=dialog], [role=menu], [role=alert]";
/**
 * Selector of overlays and forms. A form replaces the item it edits. Its fields, unlike an overlay's, can
 * regain focus.
 */
const OVERLAY_OR_FORM = `${OVERLAY}, form`;
/**
 * Selector of alerts, which are below their opener. If the opener is removed, too, its ancestors are closer
 * than the element that had the focus before.
 */
const INLINE_OVERLAY = "[role=alert]";
/**
 * Maximum length of `history`. An opener may be removed with its overlay, like a menu item. The element that
 * had the focus before the opener is used then.
 */
const HISTORY_MAX = 8;

let lastFocused: Element | undefined;
/** Number of elements of `history` that may have opened the overlay or form that contains `lastFocused`. */
let openerCount = 0;
/** The elements outside of overlays that had the focus, the latest first. */
let history: HTMLElement[] = [];
/** The ancestors of `lastFocused`, the closest first. They are recorded because a removed element has none. */
let lastAncestors: HTMLElement[] = [];

function recordFocus({ target }: FocusEvent): void {
  const focused = target as HTMLElement;
  lastFocused = focused;
  openerCount = focused.closest(OVERLAY_OR_FORM) ? (focused.closest(INLINE_OVERLAY) ? 1 : HISTORY_MAX) : 0;
  lastAncestors = ancestorsOf(focused);
  if (focused.closest(OVERLAY)) return;
  history = [focused, ...history.filter((element) => element !== focused && element.isConnected)];
  history.length = Math.min(history.length, HISTORY_MAX);
}

function restoreFocus(changes: MutationRecord[]): void {
  if (!lastFocused || document.activeElement !== document.body) return;
  if (lastFocused.isConnected) {
    const wasDisabled = changes.some(({ type, target }) => type === "attributes" && target === lastFocused);
    if (wasDisabled) tryFocus(lastFocused as HTMLElement);
    return;
  }
  const opener = history.slice(0, openerCount).find(tryFocus);
  openerCount = 0;
  if (!opener) {
    lastAncestors.find((element) => element.isConnected && (tryFocus(element) || tryFocusOnce(element)));
  }
}

/** Return false if the element cannot have the focus, as in a closed drawer. */
function tryFocus(element: HTMLElement): boolean {
  element.focus({ preventScroll: true });
  return document.activeElement === element;
}

/** Focus an element that is not focusable without a tabindex. */
function tryFocusOnce(element: HTMLElement): boolean {
  element.tabIndex = -1;
  const reset = () => element.removeAttribute("tabindex");
  element.addEventListener("blur", reset, { once: true });
  if (tryFocus(element)) return true;
  reset();
  return false;
}

function ancestorsOf(element: Element): HTMLElement[] {
  const parent = element.parentElement;
  return parent && parent !== document.body ? [parent, ...ancestorsOf(parent)] : [];
}

export function installFocusRestoration(): void {
  document.addEventListener("focusin", recordFocus);
  new MutationObserver(restoreFocus).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled"],
  });
}
