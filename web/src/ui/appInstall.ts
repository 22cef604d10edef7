/** Installing the app. The browser offers it when it likes; the offer is kept until somebody wants it. */

import { Shared, useShared } from "./sharedState.ts";

interface Offer extends Event {
  prompt(): Promise<{ outcome: "accepted" | "dismissed" }>;
}

const offered = new Shared<Offer | null>(null);

/** From the start: the browser offers it once, and early. */
export function hearOffers(): void {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault(); // no banner of the browser's own
    offered.set(event as Offer);
  });
  addEventListener("appinstalled", () => offered.set(null));
}

export function useInstall(): { installed: boolean; install: (() => Promise<void>) | undefined } {
  const offer = useShared(offered);
  const install = offer
    ? async () => {
        await offer.prompt();
        offered.set(null); // it can be used once
      }
    : undefined;
  return { installed: matchMedia("(display-mode: standalone)").matches, install };
}
