/**
 * Modules of the worker that are loaded on demand. Chromium never retries a module that failed to load, nor its
 * importers. Only a reload of the page can load it.
 */

import { ReplaySubject } from "rxjs";
import { CodedError } from "../core/errors.ts";

/** Observable that emits each time a module fails to load. */
export const loadErrors$ = new ReplaySubject<void>(1);

/** Return the loaded module. Throw `UNLOADED` if it cannot be loaded. */
export async function loadModule<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    console.error(error);
    loadErrors$.next();
    throw new CodedError("UNLOADED");
  }
}
