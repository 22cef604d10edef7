/** What can be done before anybody is signed in. */

import { proxy, type ProxyMarked } from "comlink";
import { Desk } from "./app.ts";
import { Device, type KnownAccount } from "./engines/device/device.ts";
import { WHOEVER } from "./engines/sync/wire.ts";
import * as accounts from "./services/account.ts";
import { House } from "./services/house.ts";
import { openRows } from "./services/opening.ts";
import type { Tell } from "./services/presence.ts";

export class Door {
  readonly #device = new Device();

  async enter(tell: Tell & ProxyMarked): Promise<(Desk & ProxyMarked) | null> {
    const device = this.#device;
    const account = await accounts.whoIsHere(device, WHOEVER);
    const opened = account && (await openRows(device, account.userId, tell));
    if (!opened) return null;
    await accounts.opened(device, account);
    const { records, leave } = opened;
    return proxy(new Desk(new House(account, records, device, accounts.wireOf(WHOEVER, account), leave)));
  }

  async signIn(email: string, password: string): Promise<void> {
    await accounts.signIn(this.#device, WHOEVER, email, password);
  }

  keptAccounts(): Promise<KnownAccount[]> {
    return accounts.keptAccounts(this.#device);
  }

  openKept(userId: string): Promise<void> {
    return accounts.openKept(this.#device, userId);
  }

  removeKept(userId: string): Promise<void> {
    return accounts.wipe(this.#device, userId);
  }
}
