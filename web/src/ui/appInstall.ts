/**
 * Install the app. The browser fires an event when the app can be installed. The event is stored until the user clicks
 * "Install".
 */

import { SharedState, useSharedState } from "../client/sharedState.ts";

interface InstallPromptEvent extends Event {
  prompt(): Promise<{ outcome: "accepted" | "dismissed" }>;
}

const installPrompt = new SharedState<InstallPromptEvent | null>(null);

/** Listen for the browser's event. Call this when the page starts, because the browser fires the event only once. */
export function listenForInstallPrompt(): void {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault(); // suppress the browser's own banner
    installPrompt.set(event as InstallPromptEvent);
  });
  addEventListener("appinstalled", () => installPrompt.set(null));
}

export function useInstall(): { installed: boolean; install: (() => Promise<void>) | undefined } {
  const event = useSharedState(installPrompt);
  const install = event
    ? async () => {
        await event.prompt();
        installPrompt.set(null); // the event can be used only once
      }
    : undefined;
  return { installed: matchMedia("(display-mode: standalone)").matches, install };
}
