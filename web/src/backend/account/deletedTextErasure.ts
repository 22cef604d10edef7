/**
 * Erase deleted and replaced text from the disk of this device: after a day or 200 deletes and edits, or at once after
 * "forget everything".
 *
 * A storage can be rewritten (see storage/compaction.ts) only while it is closed, so the rewrite happens just before
 * the account is opened. While the account stays open, pages are asked to reload: hidden pages, or all pages after
 * "forget everything".
 */

import type { DeviceDatabase, DeletedText } from "../../storage/deviceDatabase.ts";
import { ALL, recoverStorages, rewriteStorages } from "../../storage/accountDatabase.ts";
import { channelNames, lockNames, REQUEST_ERASURE, REQUEST_ERASURE_NOW } from "../../lib/locks.ts";
import { now, type AccountContext } from "./accountContext.ts";
import { tryExclusive } from "./accountLocks.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";

const MAX_AGE_MS = 24 * 3_600_000;
/** Maximum number of changes: deletes, and edits that remove text. */
const MAX_CHANGES = 200;
/** The fields whose old text stays in the browser's files after an edit. */
export const TEXT_FIELDS = [
  ...["filename", "statusDetail", "chunks", "name", "description", "title", "userMessage", "aiResponse"],
  ...["instructions", "feedbackText", "notices", "tags"],
  ...["key", "value", "text", "notes", "label", "content"],
];
const CHECK_MS = 60_000;
/**
 * Maximum backoff between reload requests. Without backoff, pages would reload every minute while another page stays
 * open or the rewrite fails.
 */
const MAX_BACKOFF_MS = 24 * 3_600_000;

export function isDue({ since, deletes: changes, atOnce }: DeletedText, now = Date.now()): boolean {
  return atOnce === true || changes >= MAX_CHANGES || now - Date.parse(since) >= MAX_AGE_MS;
}

/**
 * Rewrite the account's storages if erasure is due. Call this before the account is opened; a failed rewrite is retried
 * at the next opening. Throw if a complete copy of a storage cannot be copied back, for instance because the disk is
 * full: the copy is kept, and the account must not be opened.
 */
export async function eraseDeletedText(device: DeviceDatabase, userId: string): Promise<void> {
  await tryExclusive(userId, async () => {
    await recoverStorages(userId);
    const deletedText = (await device.accounts.get(userId))?.leftover;
    if (!deletedText || !isDue(deletedText) || !(await hasRoomForRewrite())) return;
    try {
      await rewriteStorages(userId, deletedText.storages);
      await device.accounts.update(userId, { leftover: null });
    } catch (error) {
      console.error(error);
      await recoverStorages(userId);
    }
  });
}

/** Return whether the free space is larger than the app's usage, or unknown. A rewrite needs that space for copies. */
export async function hasRoomForRewrite(): Promise<boolean> {
  const { usage = 0, quota = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return quota === 0 || quota - usage > usage;
}

type Row = Readonly<Record<string, unknown>>;

/** Return whether a write removed text. Streaming an answer only appends to its text, and so removes none. */
function losesText(before: Row | undefined, after: Row): boolean {
  return TEXT_FIELDS.some((name) => !textOf(after[name]).startsWith(textOf(before?.[name])));
}

function textOf(value: unknown = ""): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Counts deletes and edits, and asks pages to reload when erasure is due. Both happen only in the tab that syncs, because
 * this tab sees all writes.
 */
export class DeletedTextErasure {
  readonly #context: AccountContext;
  readonly #sync: TabCoordinator;
  readonly #pages: BroadcastChannel;
  readonly #timer: ReturnType<typeof setInterval>;
  #recording: Promise<unknown> = Promise.resolve();

  constructor(context: AccountContext, sync: TabCoordinator) {
    this.#context = context;
    this.#sync = sync;
    this.#pages = new BroadcastChannel(channelNames.reload(context.account.userId));
    for (const [name, collection] of Object.entries(context.database.collections)) {
      collection.eventBulks$.subscribe(({ events }) => {
        if (!this.#sync.replicator) return;
        const changes = events.filter(
          ({ documentData: row, previousDocumentData: before }) => row._deleted || losesText(before, row),
        ).length;
        if (changes > 0) void this.#record(this.#storagesOf(name), changes);
      });
    }
    context.forgotten$.subscribe(() => void this.#onForgotten());
    this.#timer = setInterval(() => void this.#requestErasure(), CHECK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#pages.close();
  }

  #storagesOf(name: string): string[] {
    const meta = this.#sync.replicator?.metaStorageOf(name);
    return meta ? [name, meta] : [ALL];
  }

  #record(storages: readonly string[], changes: number, atOnce = false): Promise<unknown> {
    const { account, device } = this.#context;
    return (this.#recording = this.#recording
      .then(() =>
        device.accounts.where({ userId: account.userId }).modify((row) => {
          const before = row.leftover ?? { since: now(), deletes: 0, storages: [] };
          row.leftover = {
            ...before,
            deletes: before.deletes + changes,
            storages: [...new Set([...before.storages, ...storages])],
            ...(atOnce ? { atOnce, asked: null } : {}),
          };
        }),
      )
      .catch(console.error));
  }

  /**
   * Request the erasure of all storages after a "forget everything". Its time can arrive before its deletes, so wait
   * until the deletes have arrived.
   */
  async #onForgotten(): Promise<void> {
    const { replicator: running } = this.#sync;
    if (!running) return;
    await running.awaitInSync();
    await this.#record([ALL], 0, true);
    await this.#requestErasure();
  }

  async #requestErasure(): Promise<void> {
    const { account, device } = this.#context;
    const leftover = (await device.accounts.get(account.userId))?.leftover;
    const { kind, waiting } = this.#sync.summary$.value;
    if (!this.#sync.replicator || !leftover || !isDue(leftover) || !(await hasRoomForRewrite())) return;
    if (leftover.asked && Date.now() < Date.parse(leftover.asked.nextAt)) return;
    if (!leftover.atOnce && (kind !== "live" || waiting > 0)) return;
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === lockNames.forgetting(account.userId))) return;
    await this.#backOff();
    this.#pages.postMessage(leftover.atOnce ? REQUEST_ERASURE_NOW : REQUEST_ERASURE);
  }

  async #backOff(): Promise<void> {
    const { account, device } = this.#context;
    await device.accounts.where({ userId: account.userId }).modify(({ leftover }) => {
      if (!leftover) return;
      const times = (leftover.asked?.times ?? 0) + 1;
      const delay = Math.min(CHECK_MS * 2 ** times, MAX_BACKOFF_MS);
      leftover.asked = { times, nextAt: new Date(Date.now() + delay).toISOString() };
    });
  }
}
