/** What can be done before anybody is signed in. */

import { proxy, type ProxyMarked } from "comlink";
import { AccountApi } from "./accountApi.ts";
import { Device, type DeviceAccount } from "../../storage/deviceDatabase.ts";
import { WHOEVER } from "../../lib/http.ts";
import * as accounts from "../account/accounts.ts";
import { House } from "../account/accountContext.ts";
import { openRows } from "../account/openAccount.ts";
import type { ReportOpening } from "../account/accountLocks.ts";

export class SignInApi {
  readonly #device = new Device();

  async openAccount(tell: ReportOpening & ProxyMarked): Promise<(AccountApi & ProxyMarked) | null> {
    const device = this.#device;
    const account = await accounts.whoIsHere(device, WHOEVER);
    const opened = account && (await openRows(device, account.userId, tell));
    if (!opened) return null;
    await accounts.opened(device, account);
    const { records, leave } = opened;
    return proxy(
      new AccountApi(new House(account, records, device, accounts.wireOf(WHOEVER, account), leave)),
    );
  }

  async signIn(email: string, password: string): Promise<void> {
    await accounts.signIn(this.#device, WHOEVER, email, password);
  }

  deviceAccounts(): Promise<DeviceAccount[]> {
    return accounts.keptAccounts(this.#device);
  }

  selectDeviceAccount(userId: string): Promise<void> {
    return accounts.openKept(this.#device, userId);
  }

  removeDeviceAccount(userId: string): Promise<void> {
    return accounts.wipe(this.#device, userId);
  }
}
