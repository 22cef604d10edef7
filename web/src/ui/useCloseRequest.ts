import { useEffect, useRef } from "react";

/** The browser's CloseWatcher API, which TypeScript's types lack. */
declare const CloseWatcher: { new (): { onclose: (() => void) | null; destroy(): void } } | undefined;

/**
 * Close an overlay on the close request of the device: the back button of a phone, Escape on a keyboard. In a browser
 * without CloseWatcher the back button leaves the page.
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
