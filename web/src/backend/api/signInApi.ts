/** What can be done before anybody is signed in. */

import { proxy, type ProxyMarked } from "comlink";
import { Desk } from "./accountApi.ts";
import { Device, type KnownAccount } from "../../storage/deviceDatabase.ts";
import { WHOEVER } from "../../lib/http.ts";
import * as accounts from "../account/accounts.ts";
import { House } from "../account/accountContext.ts";
import { openRows } from "../account/openAccount.ts";
import type { Tell } from "../account/accountLocks.ts";

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
