/** The account context: the open account, its database, and the server and locks that operations on it use. */

import { BehaviorSubject, distinctUntilChanged, filter, map, skip, type Observable } from "rxjs";
import type { DeviceDatabase, DeviceAccount } from "../../storage/deviceDatabase.ts";
import type { AccountDatabase } from "../../storage/accountDatabase.ts";
import type { Server } from "../../lib/http.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { nowAfter } from "../../core/schema/timestamps.ts";

export class AccountContext {
  /** The account's current entry in the device database, including changes by other tabs. */
  readonly account$: BehaviorSubject<DeviceAccount>;

  constructor(
    account: DeviceAccount,
    readonly database: AccountDatabase,
    readonly device: DeviceDatabase,
    readonly server: Server,
    readonly releaseLock: () => void = () => {},
  ) {
    this.account$ = new BehaviorSubject(account);
  }

  get account(): DeviceAccount {
    return this.account$.value;
  }

  /** Emits the time of each "forget everything" that happens while the account is open. */
  get forgotten$(): Observable<string> {
    return this.account$.pipe(
      map(({ forgottenAt }) => forgottenAt),
      distinctUntilChanged(),
      skip(1),
      filter((moment) => moment !== undefined),
    );
  }

  /** Close the database and release the lock, so that another tab can remove the account. */
  async close(): Promise<void> {
    try {
      await this.database.close();
    } finally {
      this.releaseLock();
    }
  }

  /**
   * Return the creation time for a new row: the current time, but always later than the last "forget everything", even
   * if the clock of this device is slow.
   */
  creationTime(): string {
    return nowAfter(this.account.forgottenAt);
  }
}

export const now = (): string => new Date().toISOString();

/** Return the fields that every new row starts with. */
export function newRow(context: AccountContext, id = newId()) {
  const at = context.creationTime();
  return { id, createdAt: at, updatedAt: at };
}

/** Return a selector for the ids that start with `{parentId}.`. The range ends at "/", the character after ".". */
export function childIdRange(parentId: string) {
  return { $gte: `${parentId}.`, $lt: `${parentId}/` };
}
