import { lazy, type ComponentType } from "react";
import { loadTexts } from "../locale/t.ts";
import { reportLoadError } from "./loadError.ts";

/**
 * Return a component that is loaded when it is first rendered. If loading fails, the component stays suspended and the
 * page reports the error. A rejected promise would make React unmount the whole page. Loading is not retried, because
 * the browser would not load the module again (see backend/loadModule.ts).
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
