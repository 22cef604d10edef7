/** What the verbs work with: one account on this device. */

import { BehaviorSubject, distinctUntilChanged, filter, map, skip, type Observable } from "rxjs";
import type { DeviceDatabase, DeviceAccount } from "../../storage/deviceDatabase.ts";
import type { AccountDatabase } from "../../storage/accountDatabase.ts";
import type { Server } from "../../lib/http.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { nowAfter } from "../../core/schema/timestamps.ts";

export class AccountContext {
  /** What is known of the account at this moment, whichever tab has learnt it. */
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

  /** Each time that everything is forgotten while the app is open: when it was. */
  get forgotten$(): Observable<string> {
    return this.account$.pipe(
      map(({ forgottenAt }) => forgottenAt),
      distinctUntilChanged(),
      skip(1),
      filter((moment) => moment !== undefined),
    );
  }

  /** Its rows are closed, and another tab may take the account from the device. */
  async close(): Promise<void> {
    try {
      await this.database.close();
    } finally {
      this.releaseLock();
    }
  }

  /** When what is made now was made. */
  creationTime(): string {
    return nowAfter(this.account.forgottenAt);
  }
}

export const now = (): string => new Date().toISOString();

/** The fields that every new row begins with. */
export function newRow(context: AccountContext, id = newId()) {
  const at = context.creationTime();
  return { id, createdAt: at, updatedAt: at };
}

/** Bounds of the ids `{parent}.…`, for a range of primary keys: "." comes right before "/". */
export function childIdRange(parentId: string) {
  return { $gte: `${parentId}.`, $lt: `${parentId}/` };
}
