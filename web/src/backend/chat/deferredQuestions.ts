/**
 * Turns of quotations that the assistant shall answer once it can be asked. They wait on the device, and are asked one
 * after the other, in one tab: many questions at once the server would refuse.
 */

import { QUOTES } from "../../core/chat/citation.ts";
import type { House } from "../account/accountContext.ts";
import { Retries } from "../../lib/backoff/retrySchedule.ts";

interface Ways {
  /** Whether the server is known to be away: whoever sees it come back asks then. */
  isAway: () => boolean;
  isAvailable: () => Promise<boolean>;
  /** By what a turn was answered; null: it is gone. */
  answer: (episodeId: string) => Promise<{ model?: string | undefined } | null>;
  /** Others wait than before. */
  changed: () => Promise<void>;
}

const ALL = "all";

export class Later {
  readonly #house: House;
  readonly #ways: Ways;
  readonly #retries = new Retries();

  constructor(house: House, ways: Ways) {
    this.#house = house;
    this.#ways = ways;
  }

  async want(episodeId: string, isWanted: boolean): Promise<void> {
    const { account, device } = this.#house;
    if (isWanted) await device.later.put({ episodeId, userId: account.userId, at: this.#house.madeAt() });
    else await device.later.delete(episodeId);
    await this.#ways.changed();
    if (isWanted) void this.ask();
  }

  async ids(): Promise<string[]> {
    const { account, device } = this.#house;
    return (await device.later.where({ userId: account.userId }).toArray()).map(({ episodeId }) => episodeId);
  }

  /** What fails while the server is there is tried again, ever later, or as soon as the server is back again. */
  async ask(): Promise<void> {
    await this.#ways.changed();
    const lock = `vademecum-later-${this.#house.account.userId}`;
    await navigator.locks.request(lock, () => this.#askAll()).catch(console.error);
    await this.#ways.changed();
    if ((await this.ids()).length === 0) this.#retries.end(ALL);
    else if (!this.#ways.isAway()) this.#retries.later(ALL, undefined, () => void this.#again());
  }

  async #again(): Promise<void> {
    if (!this.#house.records.closed) await this.ask().catch(console.error);
  }

  /** A turn that gets quotations once more goes on waiting, and those after it with it. */
  async #askAll(): Promise<void> {
    while (await this.#ways.isAvailable()) {
      const [next] = await this.ids();
      if (next === undefined) return;
      const answered = await this.#ways.answer(next);
      if (answered?.model === QUOTES) return;
      await this.#house.device.later.delete(next);
      this.#retries.end(ALL);
      await this.#ways.changed();
    }
  }
}
