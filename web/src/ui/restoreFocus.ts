/**
 * Restore the focus when the focused element is removed or disabled. The browser would move it to the top of the page.
 *
 * - When an overlay or a form closes, the element that opened it gets the focus. The component library does this only
 *   for overlays that it opens and closes itself, not for those that are rendered only while they are open.
 * - When another focused element is removed, such as a button that deletes its own row, its closest focusable ancestor
 *   gets the focus.
 * - When a focused button is disabled during its action, it gets the focus again once it is enabled.
 */

const OVERLAY = "[role=dialog], [role=menu], [role=alert]";
/**
 * Selector of overlays and forms. Like an overlay, a form has an opener. Unlike an overlay's elements, its fields are
 * recorded in `history`, so they can get the focus back when an overlay above the form closes.
 */
const OVERLAY_OR_FORM = `${OVERLAY}, form`;
/**
 * Selector of alerts, which appear below their opener. If the opener is removed with its alert, focus an ancestor and
 * not an earlier element of `history`, because the ancestor is closer.
 */
const INLINE_OVERLAY = "[role=alert]";
/**
 * Maximum length of `history`. It has more than one element because an opener, such as a menu item, may be removed with
 * its overlay. Then the element that had the focus before the opener gets it.
 */
const HISTORY_MAX = 8;

let lastFocused: Element | undefined;
/** Number of elements of `history` to try when the overlay or form that contains `lastFocused` closes. */
let openerCount = 0;
/** The elements outside overlays that have had the focus, the latest first. */
let history: HTMLElement[] = [];
/** The ancestors of `lastFocused`, the closest first. They are recorded because a removed element has no ancestors. */
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

/** Focus an element. Return false if it cannot have the focus, for example because it is in a closed drawer. */
function tryFocus(element: HTMLElement): boolean {
  element.focus({ preventScroll: true });
  return document.activeElement === element;
}

/** Focus an element that needs a tabindex to be focusable. Remove the tabindex when the focus leaves the element. */
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
