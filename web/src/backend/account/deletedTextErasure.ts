/**
 * Deleted text leaves the disk of this device: within a day or 200 deletes, after "forget everything" at once.
 *
 * The storages that had it are rewritten (see storage/compaction.ts) when the app is opened, because nothing else
 * may have them open. Where the app stays open, its pages are loaded again when nobody looks at them.
 */

import type { Device, Leftover } from "../../storage/deviceDatabase.ts";
import { ALL, recover, rewriteStorages } from "../../storage/accountDatabase.ts";
import { askedOn, ERASE, ERASE_NOW, forgettingLockOf } from "../../core/schema/storedSchemaVersion.ts";
import { now, type House } from "./accountContext.ts";
import { ifAlone } from "./accountLocks.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";

const DUE_MS = 24 * 3_600_000;
const DUE_DELETES = 200;
const LOOK_MS = 60_000;
/** Another page that stays open, or a rewrite that fails, must not make the pages reload every minute. */
const MOST_BACKOFF_MS = 24 * 3_600_000;

export function isDue({ since, deletes, atOnce }: Leftover, at = Date.now()): boolean {
  return atOnce === true || deletes >= DUE_DELETES || at - Date.parse(since) >= DUE_MS;
}

/**
 * Rewrite what is due, before an account is opened. What fails is tried again the next time. Throws if a complete copy
 * cannot be copied back, for instance because the disk is full: the copy stays, and the account must not be opened.
 */
export async function eraseLeftover(device: Device, userId: string): Promise<void> {
  await ifAlone(userId, async () => {
    await recover(userId);
    const leftover = (await device.accounts.get(userId))?.leftover;
    if (!leftover || !isDue(leftover) || !(await hasRoom())) return;
    try {
      await rewriteStorages(userId, leftover.storages);
      await device.accounts.update(userId, { leftover: null });
    } catch (error) {
      console.error(error);
      await recover(userId);
    }
  });
}

/** Whether this device has twice the room that the app takes now. */
export async function hasRoom(): Promise<boolean> {
  const { usage = 0, quota = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return quota === 0 || quota - usage > usage;
}

/** Notes deletes in the tab that syncs, which hears of all of them, and asks the pages to make way when they are due. */
export class Leftovers {
  readonly #house: House;
  readonly #syncing: SyncCoordinator;
  readonly #pages: BroadcastChannel;
  readonly #looking: ReturnType<typeof setInterval>;
  #noting: Promise<unknown> = Promise.resolve();

  constructor(house: House, syncing: SyncCoordinator) {
    this.#house = house;
    this.#syncing = syncing;
    this.#pages = new BroadcastChannel(askedOn(house.account.userId));
    for (const [name, collection] of Object.entries(house.records.collections)) {
      collection.eventBulks$.subscribe(({ events }) => {
        const deletes = events.filter(({ documentData }) => documentData._deleted).length;
        if (deletes > 0 && this.#syncing.running) void this.#note(this.#storagesOf(name), deletes);
      });
    }
    house.forgotten$.subscribe(() => void this.#forgotten());
    this.#looking = setInterval(() => void this.#ask(), LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#looking);
    this.#pages.close();
  }

  #storagesOf(name: string): string[] {
    const meta = this.#syncing.running?.metaStorageOf(name);
    return meta ? [name, meta] : [ALL];
  }

  #note(storages: readonly string[], deletes: number, atOnce = false): Promise<unknown> {
    const { account, device } = this.#house;
    return (this.#noting = this.#noting
      .then(() =>
        device.accounts.where({ userId: account.userId }).modify((row) => {
          const before = row.leftover ?? { since: now(), deletes: 0, storages: [] };
          row.leftover = {
            ...before,
            deletes: before.deletes + deletes,
            storages: [...new Set([...before.storages, ...storages])],
            ...(atOnce ? { atOnce, asked: null } : {}),
          };
        }),
      )
      .catch(console.error));
  }

  /** Wait until the deletes are here: the news of them can be quicker. */
  async #forgotten(): Promise<void> {
    const { running } = this.#syncing;
    if (!running) return;
    await running.awaitInSync();
    await this.#note([ALL], 0, true);
    await this.#ask();
  }

  async #ask(): Promise<void> {
    const { account, device } = this.#house;
    const leftover = (await device.accounts.get(account.userId))?.leftover;
    const { kind, waiting } = this.#syncing.summary$.value;
    if (!this.#syncing.running || !leftover || !isDue(leftover) || !(await hasRoom())) return;
    if (leftover.asked && Date.now() < Date.parse(leftover.asked.nextAt)) return;
    if (!leftover.atOnce && (kind !== "live" || waiting > 0)) return;
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === forgettingLockOf(account.userId))) return;
    await this.#backOff();
    this.#pages.postMessage(leftover.atOnce ? ERASE_NOW : ERASE);
  }

  async #backOff(): Promise<void> {
    const { account, device } = this.#house;
    await device.accounts.where({ userId: account.userId }).modify(({ leftover }) => {
      if (!leftover) return;
      const times = (leftover.asked?.times ?? 0) + 1;
      const delay = Math.min(LOOK_MS * 2 ** times, MOST_BACKOFF_MS);
      leftover.asked = { times, nextAt: new Date(Date.now() + delay).toISOString() };
    });
  }
}
