/** The page's connection to the worker, and hooks that render again when data changes. */

import { proxy, wrap, type ProxyMarked, type Remote } from "comlink";
import { createContext, useContext, useEffect, useState } from "react";
import type {
  AccountApi,
  AnswerDraft,
  ConflictLoser,
  DeviceAccount,
  SignInApi,
  Streams,
} from "../backend/api.ts";
import { applyPatches, type AnswerDrafts, type DraftPatches } from "../core/chat/draftPatches.ts";
import type { Collections, VectorEmbeddingDoc } from "../core/schema/rows.ts";
import { useIsForgotten } from "./erasure.ts";
import type { Drafts } from "./drafts.ts";

/** Comlink's `Remote` loses type parameters, so the methods that have one are declared here. */
interface Watches {
  watch<Name extends keyof Streams>(
    name: Name,
    listener: ((value: Streams[Name]) => void) & ProxyMarked,
  ): unknown;
  watchRows<Name extends keyof Collections>(
    name: Name,
    query: object,
    listener: ((rows: Collections[Name][]) => void) & ProxyMarked,
  ): unknown;
}

export type RemoteAccountApi = Omit<Remote<AccountApi>, keyof Watches> & Watches;

const worker = new Worker(new URL("../backendWorker.ts", import.meta.url), { type: "module" });

export const signInApi: Remote<SignInApi> = wrap<SignInApi>(worker);

/**
 * Promise that rejects when the worker cannot be loaded or started. Calls to a worker that has not started would wait
 * forever.
 */
export const workerFailure = new Promise<never>((_, reject) => {
  worker.addEventListener("error", ({ message }) => reject(new Error(message)), { once: true });
});
workerFailure.catch(() => {}); // the caller that awaits the promise reports the error

export interface OpenAccount {
  api: RemoteAccountApi;
  account: DeviceAccount;
  drafts: Drafts;
}

const Context = createContext<OpenAccount | null>(null);
export const AccountProvider = Context.Provider;

export function useAccountApi(): OpenAccount {
  const found = useContext(Context);
  if (!found) throw new Error("No account is open.");
  return found;
}

/**
 * Function that subscribes a listener and returns a promise of the unsubscribe function. The return type is `unknown`,
 * because Comlink does not type a returned proxied function as async.
 */
type Subscribe<T> = (listener: ((value: T) => void) & ProxyMarked) => unknown;

/**
 * Return the last value of a subscription, or undefined before the first value. A new `key` starts a new subscription.
 */
export function useSubscription<T>(subscribe: Subscribe<T>, key: string): T | undefined {
  return usePatchedSubscription<T, T>(subscribe, key, (_, value) => value);
}

/** Return the value that the patches of a subscription have produced so far, or undefined before the first patch. */
function usePatchedSubscription<Value, Patch>(
  subscribe: Subscribe<Patch>,
  key: string,
  apply: (value: Value | undefined, patch: Patch) => Value,
): Value | undefined {
  const [latest, setLatest] = useState<{ key: string; value: Value }>();
  useEffect(() => {
    let isActive = true;
    let value: Value | undefined;
    const listener = proxy((patch: Patch) => {
      value = apply(value, patch);
      if (isActive) setLatest({ key, value });
    });
    const unsubscribe = subscribe(listener) as Promise<() => void>;
    return () => {
      isActive = false;
      void unsubscribe.then((stop) => stop());
    };
    // `subscribe` is a new function at each render, so only a change of `key` may start a new subscription.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return latest?.key === key ? latest.value : undefined;
}

const NONE: never[] = [];

/**
 * Return the rows of a collection that match a Mango query, or undefined until they are read. After "forget everything"
 * there are none.
 */
export function useRows<Name extends keyof Collections>(
  name: Name,
  query: object = {},
): Collections[Name][] | undefined {
  const { api } = useAccountApi();
  const rows = useSubscription<Collections[Name][]>(
    (listener) => api.watchRows(name, query, listener),
    `${name} ${JSON.stringify(query)}`,
  );
  return useIsForgotten() ? NONE : rows;
}

/** Return the last value of a stream of the backend, or undefined before the first value. */
function useStream<Name extends keyof Streams>(name: Name, { api } = useAccountApi()) {
  return useSubscription<Streams[Name]>((listener) => api.watch(name, listener), name);
}

/** Return the current account, which may have changed since the app was opened. */
export function useAccount(open: OpenAccount): DeviceAccount {
  return useStream("account", open) ?? open.account;
}

export const useSync = () => useStream("sync");

/** Return the rows that the server rejected, newest first. */
export const useRejectedRows = () => useStream("rejectedRows");

export const useUploads = () => useStream("uploads");

/** Return a map from document id to progress, for the documents that the server is embedding. */
export const useServerEmbedding = () => useStream("embedding");

export const useModel = () => useStream("model");

export const useAssistant = () => useStream("assistant");

/** Return the texts that lost a conflict, newest first. */
export function useConflictLosers(): ConflictLoser[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchConflictLosers(listener), "lost");
}

/** Return the ids of files that exist only on this device. */
export function useWaitingFiles(): string[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchFiles(listener), "files");
}

/** Return the chunks of a document, or undefined until they are read. */
export function useChunks(documentId: string): VectorEmbeddingDoc["chunks"] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchChunks(documentId, listener), `chunks ${documentId}`);
}

export function useAnswerDrafts(): Readonly<Record<string, AnswerDraft>> | undefined {
  const { api } = useAccountApi();
  return usePatchedSubscription<AnswerDrafts<AnswerDraft>, DraftPatches<AnswerDraft>>(
    (listener) => api.watch("answerDrafts", listener),
    "answer drafts",
    (drafts = {}, patches) => applyPatches(drafts, patches),
  );
}
