/** Parts of the page that are loaded when they are first shown. */

import { lazy, type ComponentType } from "react";
import { loadTexts } from "../locale/t.ts";
import { tellUnloaded } from "./loadError.ts";

/**
 * One that cannot be loaded, as on a first visit that ends in a tunnel, leaves its place as it is, and the page says
 * so. React would take the whole page away instead. To ask again would be in vain: see backend/loadModule.ts.
 */
export function part<Part extends ComponentType<any>>(load: () => Promise<{ default: Part }>) {
  return lazy(() => {
    const askedAt = performance.now();
    return Promise.all([load(), loadTexts()])
      .then(([part]) => part)
      .catch((error: unknown) => {
        console.error(error);
        tellUnloaded(askedAt);
        return new Promise<never>(() => {});
      });
  });
}
