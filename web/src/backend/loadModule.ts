/**
 * Load modules of the worker on demand. Chromium does not retry a module that failed to load, nor the modules that
 * import it, until the page is reloaded.
 */

import { ReplaySubject } from "rxjs";
import { CodedError } from "../core/errors.ts";

/** Emits each time a module fails to load. A late subscriber also gets the last failure. */
export const loadErrors$ = new ReplaySubject<void>(1);

/** Return the module that is being loaded. Throw `UNLOADED` if it cannot be loaded. */
export async function loadModule<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    console.error(error);
    loadErrors$.next();
    throw new CodedError("UNLOADED");
  }
}
