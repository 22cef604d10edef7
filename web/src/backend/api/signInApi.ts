/** What can be done before anybody is signed in. */

import { proxy, type ProxyMarked } from "comlink";
import { AccountApi } from "./accountApi.ts";
import { Device, type KnownAccount } from "../../storage/deviceDatabase.ts";
import { WHOEVER } from "../../lib/http.ts";
import * as accounts from "../account/accounts.ts";
import { AccountContext } from "../account/accountContext.ts";
import { openAccount } from "../account/openAccount.ts";
import type { OpeningListener } from "../account/accountLocks.ts";

export class SignInApi {
  readonly #device = new Device();

  async openAccount(onState: OpeningListener & ProxyMarked): Promise<(AccountApi & ProxyMarked) | null> {
    const device = this.#device;
    const account = await accounts.findCurrentAccount(device, WHOEVER);
    const opened = account && (await openAccount(device, account.userId, onState));
    if (!opened) return null;
    await accounts.markOpened(device, account);
    const { database: records, releaseLock: leave } = opened;
    return proxy(
      new AccountApi(
        new AccountContext(account, records, device, accounts.withAccountHeader(WHOEVER, account), leave),
      ),
    );
  }

  async signIn(email: string, password: string): Promise<void> {
    await accounts.signIn(this.#device, WHOEVER, email, password);
  }

  listStoredAccounts(): Promise<KnownAccount[]> {
    return accounts.listStoredAccounts(this.#device);
  }

  selectStoredAccount(userId: string): Promise<void> {
    return accounts.selectStoredAccount(this.#device, userId);
  }

  removeStoredAccount(userId: string): Promise<void> {
    return accounts.wipeAccount(this.#device, userId);
  }
}
