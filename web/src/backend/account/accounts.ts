/** Accounts on this device: signing in and out, profile and removal. */

import type { DeviceDatabase, DeviceAccount, Limits, Usage } from "../../storage/deviceDatabase.ts";
import { compact, removeAccountDatabase as removeRecords } from "../../storage/accountDatabase.ts";
import { ApiError, requestJson, sendRequest, type Server } from "../../lib/http.ts";
import { CodedError } from "../../core/errors.ts";
import { now, type AccountContext } from "./accountContext.ts";
import { withExclusive } from "./accountLocks.ts";

const TIMEOUT_MS = 2_000;

/** The response of `GET /v1/me`. */
export interface Profile {
  userId: string;
  email: string;
  tier: DeviceAccount["tier"];
  limits: Limits;
  promptScoreShare: number;
  /** Storage usage. Null if the server cannot open the account's database at the moment. */
  usage: { documents: number; bytes: number } | null;
  /**
   * Progress of a model change on the server: `done` of `of` blocks have vectors of the new model. Null if no model
   * change is running.
   */
  reembedding: { done: number; of: number } | null;
}

/**
 * Return the server with a header that names the account. All tabs of a browser share one cookie. If the cookie belongs
 * to another account, the server rejects these requests as signed out, so that accounts never mix.
 */
export function serverFor(server: Server, { userId }: Pick<DeviceAccount, "userId">): Server {
  return { ...server, headers: { ...server.headers, "x-vademecum-account": userId } };
}

/**
 * Return the account to open: the account that the user just chose, else the account of the cookie. If the server is
 * unreachable or has signed this browser out, return the last used account. Return undefined if there is none and the
 * user must sign in.
 */
export async function accountToOpen(
  device: DeviceDatabase,
  server: Server,
): Promise<DeviceAccount | undefined> {
  const last = await device.lastAccount();
  if (last?.isWanted) return last;
  // Limit the wait for a hanging network if the app can open the last used account instead.
  const init = last ? { signal: AbortSignal.timeout(TIMEOUT_MS) } : {};
  try {
    return await storeProfile(device, await requestJson<Profile>(server, "/v1/me", init));
  } catch {
    return last;
  }
}

/** Clear the mark of the account that the user chose to open, once that account is open. */
export async function clearSelection(
  device: DeviceDatabase,
  { userId, isWanted }: DeviceAccount,
): Promise<void> {
  if (!isWanted) return;
  await device.accounts.update(userId, { isWanted: false }).catch(console.error); // a full disk must not prevent opening
}

/** Fetch and store the current tier, limits and usage. If the server is unreachable, keep the last known values. */
export async function refreshProfile({ account, device, server }: AccountContext): Promise<void> {
  const found = await profile(server).catch(() => undefined);
  if (found?.userId === account.userId) await storeProfile(device, found);
}

/** Return the current usage, or the last known usage if the server is unreachable. */
export async function usage(context: AccountContext): Promise<Usage | null> {
  await refreshProfile(context);
  return (await context.device.accounts.get(context.account.userId))?.usage ?? null;
}

export async function signIn(
  device: DeviceDatabase,
  server: Server,
  email: string,
  password: string,
  expected?: string,
): Promise<DeviceAccount> {
  await sendRequest(server, "/v1/sign-in", { method: "POST", body: JSON.stringify({ email, password }) });
  const found = await profile(server);
  return expected && found.userId !== expected ? toDeviceAccount(found) : storeProfile(device, found);
}

/**
 * Sign in again to the open account. If the email and password sign in to another account, sign out and throw
 * `OTHER_ACCOUNT`, so that accounts never mix.
 */
export async function signInAgain(
  { account, device }: AccountContext,
  server: Server,
  password: string,
): Promise<void> {
  const { userId, email } = account;
  const found = await signIn(device, server, email, password, userId);
  if (found.userId === userId) return;
  await signOut(server);
  throw new CodedError("OTHER_ACCOUNT");
}

/**
 * Sign this browser out. The account's data stays readable on this device until the user removes the account from it.
 */
export async function signOut(server: Server): Promise<void> {
  try {
    await sendRequest(server, "/v1/sign-out", { method: "POST" });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
  }
}

/** Set the password and sign out all other browsers. `current` is required if the account already has a password. */
export async function changePassword(server: Server, current: string, password: string): Promise<void> {
  const body = JSON.stringify({ new: password, current: current || null });
  await sendRequest(server, "/v1/password", { method: "POST", body });
}

/** Return the account's profile on the server. */
export function profile(server: Server): Promise<Profile> {
  return requestJson<Profile>(server, "/v1/me");
}

/** Return the accounts on this device, last used first. */
export async function deviceAccounts(device: DeviceDatabase): Promise<DeviceAccount[]> {
  return device.accounts.orderBy("usedAt").reverse().toArray();
}

/** Make this the account to open next, even if the cookie belongs to another account. */
export async function selectDeviceAccount(device: DeviceDatabase, userId: string): Promise<void> {
  await device.accounts.update(userId, { usedAt: now(), isWanted: true });
}

/**
 * Remove an account and its data from this device. Throw `OPEN_ELSEWHERE` if a tab keeps it open. The server keeps the
 * data.
 */
export function removeFromDevice(device: DeviceDatabase, userId: string): Promise<void> {
  return withExclusive(userId, async () => {
    // A new round makes the next sync start from zero. If the removal fails halfway, that sync restores the missing
    // rows. A failure to store the round, as on a full disk, must not prevent the removal.
    await device.accounts.update(userId, { round: crypto.randomUUID() }).catch(console.error);
    await removeRecords(userId);
    await device.deleteAccount(userId); // after the rows, so that the account stays listed while it has rows
    await compact();
  });
}

/**
 * Merge the server's profile into the stored account. The transaction keeps changes that another tab makes at the same
 * time.
 */
function storeProfile(device: DeviceDatabase, found: Profile): Promise<DeviceAccount> {
  return device.transaction("rw", device.accounts, async () => {
    const account: DeviceAccount = {
      ...(await device.accounts.get(found.userId)),
      ...toDeviceAccount(found),
    };
    await device.accounts.put(account);
    return account;
  });
}

function toDeviceAccount({ userId, email, tier, limits, promptScoreShare, usage }: Profile): DeviceAccount {
  const at = now();
  const known = usage ? { usage: { ...usage, at } } : {};
  return { userId, email, tier, limits, promptScoreShare, usedAt: at, ...known };
}
