/**
 * Parts of the worker that are loaded when they are wanted. Chromium does not fetch a module again that it could not
 * fetch once, nor what imports it, under whatever address: only a page that is loaded anew has it.
 */

import { ReplaySubject } from "rxjs";
import { CodedError } from "../core/errors.ts";

/** Each time that one could not be loaded. */
export const loadErrors$ = new ReplaySubject<void>(1);

/** What `loading` brings. Throws `UNLOADED`, and nothing was done. */
export async function loadModule<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    console.error(error);
    loadErrors$.next();
    throw new CodedError("UNLOADED");
  }
}
