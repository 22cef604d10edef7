/**
 * The worker's API before a user is signed in: open an account, sign in, manage the accounts on this device.
 */

import { proxy, type ProxyMarked } from "comlink";
import { AccountApi } from "./accountApi.ts";
import { DeviceDatabase, type DeviceAccount } from "../../storage/deviceDatabase.ts";
import { ANY_ACCOUNT } from "../../lib/http.ts";
import * as accounts from "../account/accounts.ts";
import { AccountContext } from "../account/accountContext.ts";
import { openDatabase } from "../account/openAccount.ts";
import type { ReportOpening } from "../account/accountLocks.ts";

export class SignInApi {
  readonly #device = new DeviceDatabase();

  async openAccount(tell: ReportOpening & ProxyMarked): Promise<(AccountApi & ProxyMarked) | null> {
    const device = this.#device;
    const account = await accounts.accountToOpen(device, ANY_ACCOUNT);
    const opened = account && (await openDatabase(device, account.userId, tell));
    if (!opened) return null;
    await accounts.clearSelection(device, account);
    const { database, releaseLock: leave } = opened;
    return proxy(
      new AccountApi(
        new AccountContext(account, database, device, accounts.serverFor(ANY_ACCOUNT, account), leave),
      ),
    );
  }

  async signIn(email: string, password: string): Promise<void> {
    await accounts.signIn(this.#device, ANY_ACCOUNT, email, password);
  }

  deviceAccounts(): Promise<DeviceAccount[]> {
    return accounts.deviceAccounts(this.#device);
  }

  selectDeviceAccount(userId: string): Promise<void> {
    return accounts.selectDeviceAccount(this.#device, userId);
  }

  removeDeviceAccount(userId: string): Promise<void> {
    return accounts.removeFromDevice(this.#device, userId);
  }
}
