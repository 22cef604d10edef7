import { lazy, type ComponentType } from "react";
import { loadTexts } from "../locale/t.ts";
import { reportLoadError } from "./loadError.ts";

/**
 * Return a component that is loaded when it is first rendered. If it cannot be loaded, it stays suspended and the page
 * reports the error; a rejected promise would make React unmount the whole page. It is not retried, because the browser
 * would fail again (see backend/loadModule.ts).
 */
export function lazyComponent<Part extends ComponentType<any>>(load: () => Promise<{ default: Part }>) {
  return lazy(() => {
    const startedAt = performance.now();
    return Promise.all([load(), loadTexts()])
      .then(([module]) => module)
      .catch((error: unknown) => {
        console.error(error);
        reportLoadError(startedAt);
        return new Promise<never>(() => {});
      });
  });
}
