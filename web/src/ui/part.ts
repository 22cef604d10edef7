/** Parts of the page that are loaded when they are first shown. */

import { lazy, type ComponentType } from "react";
import { retryMs } from "../model/retry.ts";

/**
 * One that cannot be loaded, as on a first visit that ends in a tunnel, is tried again until it is here. React would
 * take the whole page away instead.
 */
export function part<Part extends ComponentType<any>>(load: () => Promise<{ default: Part }>) {
  return lazy(async () => {
    for (let tries = 0; ; tries++) {
      try {
        return await load();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, retryMs(tries)));
      }
    }
  });
}
