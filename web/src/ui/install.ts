/** Installing the app. The browser offers it when it likes; the offer is kept until somebody wants it. */

import { BehaviorSubject } from "rxjs";
import { useEffect, useState } from "react";

interface Offer extends Event {
  prompt(): Promise<{ outcome: "accepted" | "dismissed" }>;
}

const offer$ = new BehaviorSubject<Offer | null>(null);

/** From the start: the browser offers it once, and early. */
export function hearOffers(): void {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault(); // no banner of the browser's own
    offer$.next(event as Offer);
  });
  addEventListener("appinstalled", () => offer$.next(null));
}

export function useInstall(): { installed: boolean; install: (() => Promise<void>) | undefined } {
  const [offer, setOffer] = useState(offer$.value);
  useEffect(() => {
    const subscription = offer$.subscribe(setOffer);
    return () => subscription.unsubscribe();
  }, []);
  const install = offer
    ? async () => {
        await offer.prompt();
        offer$.next(null); // it can be used once
      }
    : undefined;
  return { installed: matchMedia("(display-mode: standalone)").matches, install };
}
