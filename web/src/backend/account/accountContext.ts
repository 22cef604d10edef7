/** What the verbs work with: one account on this device. */

import { BehaviorSubject, distinctUntilChanged, filter, map, skip, type Observable } from "rxjs";
import type { Device, DeviceAccount } from "../../storage/deviceDatabase.ts";
import type { Records } from "../../storage/accountDatabase.ts";
import type { Wire } from "../../lib/http.ts";
import { newId } from "../../core/schema/uuid7.ts";
import { nowAfter } from "../../core/schema/timestamps.ts";

export class House {
  /** What is known of the account at this moment, whichever tab has learnt it. */
  readonly account$: BehaviorSubject<DeviceAccount>;

  constructor(
    account: DeviceAccount,
    readonly records: Records,
    readonly device: Device,
    readonly wire: Wire,
    readonly leave: () => void = () => {},
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
      await this.records.close();
    } finally {
      this.leave();
    }
  }

  /** When what is made now was made. */
  madeAt(): string {
    return nowAfter(this.account.forgottenAt);
  }
}

export const now = (): string => new Date().toISOString();

/** The fields that every new row begins with. */
export function begun(house: House, id = newId()) {
  const at = house.madeAt();
  return { id, createdAt: at, updatedAt: at };
}

/** Bounds of the ids `{parent}.…`, for a range of primary keys: "." comes right before "/". */
export function childIds(parentId: string) {
  return { $gte: `${parentId}.`, $lt: `${parentId}/` };
}
