/** The page's side of the worker: one connection, and hooks that draw again when something changes. */

import { proxy, wrap, type ProxyMarked, type Remote } from "comlink";
import { createContext, useContext, useEffect, useState } from "react";
import type {
  AccountApi,
  AnswerDraft,
  AssistantState,
  ConflictLoser,
  DeviceAccount,
  ModelState,
  RejectedRow,
  SignInApi,
  SyncSummary,
} from "../backend/api.ts";
import type { Progress } from "../core/documents/documentList.ts";
import type { Collections, VectorEmbeddingDoc } from "../core/schema/rows.ts";
import type { Task } from "../core/documents/uploadTask.ts";
import { useIsForgotten } from "./erasure.ts";
import type { Drafts } from "./drafts.ts";

export type RemoteAccountApi = Remote<AccountApi>;

const worker = new Worker(new URL("../worker.ts", import.meta.url), { type: "module" });

export const signInApi: Remote<SignInApi> = wrap<SignInApi>(worker);

/** Rejects when the worker cannot be loaded or begun: whatever is asked of it would never be answered. */
export const workerFailure = new Promise<never>((_, reject) => {
  worker.addEventListener("error", ({ message }) => reject(new Error(message)), { once: true });
});
workerFailure.catch(() => {}); // told by whoever waits for it

export interface OpenAccount {
  api: RemoteAccountApi;
  account: DeviceAccount;
  drafts: Drafts;
}

const Context = createContext<OpenAccount | null>(null);
export const AccountProvider = Context.Provider;

export function useAccountApi(): OpenAccount {
  const found = useContext(Context);
  if (!found) throw new Error("Nobody is signed in here.");
  return found;
}

/** Comlink's types do not say that what is proxied, as what stops a watch, is called from afar. */
type Subscribe<T> = (listener: ((value: T) => void) & ProxyMarked) => unknown;

/** What `watch` last said; undefined until it has. `key` names what is watched: another key is another watch. */
export function useSubscription<T>(watch: Subscribe<T>, key: string): T | undefined {
  const [held, setHeld] = useState<{ key: string; value: T }>();
  useEffect(() => {
    let gone = false;
    const listener = proxy((value: T) => void (gone || setHeld({ key, value })));
    const stopping = watch(listener) as Promise<() => void>;
    return () => {
      gone = true;
      void stopping.then((stop) => stop());
    };
    // `watch` is made anew at every drawing; `key` says when it is another one.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return held?.key === key ? held.value : undefined;
}

const NONE: never[] = [];

/** Rows of a collection that fit a Mango query. */
export function useRows<Name extends keyof Collections>(
  name: Name,
  query: object = {},
): Collections[Name][] | undefined {
  const { api } = useAccountApi();
  const rows = useSubscription<Collections[Name][]>(
    (listener) => api.watchRows(name, query, listener as never),
    `${name} ${JSON.stringify(query)}`,
  );
  return useIsForgotten() ? NONE : rows;
}

/** The account as it is known now, and not only when the app was opened. */
export function useAccount({ api, account }: OpenAccount): DeviceAccount {
  const found = useSubscription<DeviceAccount>((listener) => api.watchAccount(listener), "account");
  return found ?? account;
}

export function useSync(): SyncSummary | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchSync(listener), "sync");
}

/** Rows that the server refused, newest first. */
export function useRejectedRows(): RejectedRow[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchRejectedRows(listener), "refused");
}

/** Words that gave way in a conflict, newest first. */
export function useConflictLosers(): ConflictLoser[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchConflictLosers(listener), "lost");
}

/** The ids of files that wait on this device alone. */
export function useWaitingFiles(): string[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchFiles(listener), "files");
}

export function useUploads(): Task[] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchUploads(listener), "uploads");
}

/** How far documents are that the server embeds, by their ids. */
export function useServerEmbedding(): Record<string, Progress> | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchEmbedding(listener), "embedding");
}

/** The text of a document as its chunks; undefined until they are read. */
export function useChunks(documentId: string): VectorEmbeddingDoc["chunks"] | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchChunks(documentId, listener), `chunks ${documentId}`);
}

export function useModel(): ModelState | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchModel(listener), "model");
}

export function useAnswerDrafts(): Record<string, AnswerDraft> | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchAnswerDrafts(listener), "writing");
}

export function useAssistant(): AssistantState | undefined {
  const { api } = useAccountApi();
  return useSubscription((listener) => api.watchAssistant(listener), "assistant");
}
