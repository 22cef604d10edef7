/** What closes what lies over the page, wherever the device has it: the back button of a phone, Escape on a keyboard. */

import { useEffect, useRef } from "react";

/** What TypeScript does not know of a browser yet. */
declare const CloseWatcher: { new (): { onclose: (() => void) | null; destroy(): void } } | undefined;

/** Where the browser knows no such request, going back leaves the page, as it always did. */
export function useCloseRequest(isOpen: boolean, close: () => void): void {
  const latest = useRef(close);
  useEffect(() => void (latest.current = close));
  useEffect(() => {
    if (!isOpen || typeof CloseWatcher === "undefined") return;
    const watcher = new CloseWatcher();
    watcher.onclose = () => latest.current();
    return () => watcher.destroy();
  }, [isOpen]);
}
