import { useEffect, useRef } from "react";

/** The browser's CloseWatcher API, which is missing from TypeScript's types. */
declare const CloseWatcher: { new (): { onclose: (() => void) | null; destroy(): void } } | undefined;

/**
 * Close an overlay when the user presses the back button of a phone, or Escape. In a browser without CloseWatcher, the
 * back button leaves the page instead.
 */
export function useCloseRequest(isOpen: boolean, close: () => void): void {
  const latestClose = useRef(close);
  useEffect(() => void (latestClose.current = close));
  useEffect(() => {
    if (!isOpen || typeof CloseWatcher === "undefined") return;
    const watcher = new CloseWatcher();
    watcher.onclose = () => latestClose.current();
    return () => watcher.destroy();
  }, [isOpen]);
}
