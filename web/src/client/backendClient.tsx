/** The page's side of the worker: one connection, and hooks that draw again when something changes. */

import { proxy, wrap, type ProxyMarked, type Remote } from "comlink";
import { createContext, useContext, useEffect, useState } from "react";
import type { Desk } from "../backend/api/accountApi.ts";
import type { Door } from "../backend/api/signInApi.ts";
import type { KnownAccount, LostText } from "../storage/deviceDatabase.ts";
import type { Progress } from "../core/documents/documentList.ts";
import type { Collections, VectorEmbeddingDoc } from "../core/schema/rows.ts";
import type { AssistantState, Writing } from "../backend/chat/answerQuestion.ts";
import type { ModelState } from "../backend/library/embeddingModel.ts";
import type { RefusedRow } from "../backend/sync/rejectedRows.ts";
import type { SyncSummary } from "../backend/sync/syncCoordinator.ts";
import type { Task } from "../core/documents/uploadTask.ts";
import { useIsForgotten } from "../ui/leaveAccount.ts";

export type RemoteDesk = Remote<Desk>;

const worker = new Worker(new URL("../worker.ts", import.meta.url), { type: "module" });

export const door: Remote<Door> = wrap<Door>(worker);

/** Rejects when the worker cannot be loaded or begun: whatever is asked of it would never be answered. */
export const unopened = new Promise<never>((_, reject) => {
  worker.addEventListener("error", ({ message }) => reject(new Error(message)), { once: true });
});
unopened.catch(() => {}); // told by whoever waits for it

export interface AtDesk {
  desk: RemoteDesk;
  account: KnownAccount;
}

const Context = createContext<AtDesk | null>(null);
export const DeskProvider = Context.Provider;

export function useDesk(): AtDesk {
  const found = useContext(Context);
  if (!found) throw new Error("Nobody is signed in here.");
  return found;
}

/** Comlink's types do not say that what is proxied, as what stops a watch, is called from afar. */
type Watch<T> = (listener: ((value: T) => void) & ProxyMarked) => unknown;

/** What `watch` last said; undefined until it has. `key` names what is watched: another key is another watch. */
export function useWatched<T>(watch: Watch<T>, key: string): T | undefined {
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
  const { desk } = useDesk();
  const rows = useWatched<Collections[Name][]>(
    (listener) => desk.watch(name, query, listener as never),
    `${name} ${JSON.stringify(query)}`,
  );
  return useIsForgotten() ? NONE : rows;
}

/** The account as it is known now, and not only when the app was opened. */
export function useAccount({ desk, account }: AtDesk): KnownAccount {
  const found = useWatched<KnownAccount>((listener) => desk.watchAccount(listener), "account");
  return found ?? account;
}

export function useSync(): SyncSummary | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchSync(listener), "sync");
}

/** Rows that the server refused, newest first. */
export function useRefused(): RefusedRow[] | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchRefused(listener), "refused");
}

/** Words that gave way in a conflict, newest first. */
export function useLost(): LostText[] | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchLost(listener), "lost");
}

/** The ids of files that wait on this device alone. */
export function useFiles(): string[] | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchFiles(listener), "files");
}

export function useUploads(): Task[] | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchUploads(listener), "uploads");
}

/** How far documents are that the server embeds, by their ids. */
export function useEmbedding(): Record<string, Progress> | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchEmbedding(listener), "embedding");
}

/** The text of a document as its chunks; undefined until they are read. */
export function useChunks(documentId: string): VectorEmbeddingDoc["chunks"] | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchChunks(documentId, listener), `chunks ${documentId}`);
}

export function useModel(): ModelState | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchModel(listener), "model");
}

export function useWriting(): Record<string, Writing> | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchWriting(listener), "writing");
}

export function useAssistant(): AssistantState | undefined {
  const { desk } = useDesk();
  return useWatched((listener) => desk.watchAssistant(listener), "assistant");
}
