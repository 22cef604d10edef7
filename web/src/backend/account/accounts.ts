/** Who uses this device: signing in and out, and what is known of the account without a network. */

import type { DeviceDatabase, DeviceAccount, Limits, Usage } from "../../storage/deviceDatabase.ts";
import { compact, removeAccountDatabase as removeRecords } from "../../storage/accountDatabase.ts";
import { ApiError, requestJson, sendRequest, type Server } from "../../lib/http.ts";
import { CodedError } from "../../core/errors.ts";
import { now, type AccountContext } from "./accountContext.ts";
import { withExclusive } from "./accountLocks.ts";

const TIMEOUT_MS = 2_000;

/** `GET /v1/me`. */
export interface Profile {
  userId: string;
  email: string;
  tier: DeviceAccount["tier"];
  limits: Limits;
  /** Null: the server cannot open the account's file at the moment. */
  usage: { documents: number; bytes: number } | null;
  /** While the server changes its model: how many blocks the new one has embedded. */
  reembedding: { done: number; of: number } | null;
}

/**
 * For requests of one account alone. All tabs of a browser share one cookie: while it is somebody else's, the server
 * refuses these as it does those of a browser that is signed out, and the rows of two accounts never mix.
 */
export function serverFor(server: Server, { userId }: Pick<DeviceAccount, "userId">): Server {
  return { ...server, headers: { ...server.headers, "x-vademecum-account": userId } };
}

/**
 * The account to open: the one that was just chosen, else whom the server knows this browser as, else, when the server
 * is away or has signed it out, who used this device last. Undefined: nobody, so one has to sign in.
 */
export async function accountToOpen(
  device: DeviceDatabase,
  server: Server,
): Promise<DeviceAccount | undefined> {
  const last = await device.lastAccount();
  if (last?.isWanted) return last;
  // Who has used this device need not wait for a network that takes and gives nothing.
  const init = last ? { signal: AbortSignal.timeout(TIMEOUT_MS) } : {};
  try {
    return await storeProfile(device, await requestJson<Profile>(server, "/v1/me", init));
  } catch {
    return last;
  }
}

/** It is open: that it was chosen counts once, however often it took to open it. */
export async function clearSelection(
  device: DeviceDatabase,
  { userId, isWanted }: DeviceAccount,
): Promise<void> {
  if (!isWanted) return;
  await device.accounts.update(userId, { isWanted: false }).catch(console.error); // no room is no reason
}

/** Tier, limits and usage as the server has them now. While it is away, what it said last is as good as anything. */
export async function refreshProfile({ account, device, server }: AccountContext): Promise<void> {
  const found = await profile(server).catch(() => undefined);
  if (found?.userId === account.userId) await storeProfile(device, found);
}

/** What of the limits is taken: as the server counts it now or, when it is away, as it last did. */
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
 * Signs this browser in again, as the same account: nothing on the device changes. Who turns out to be somebody else is
 * signed out at once, so that two accounts never mix.
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

/** Signs this browser out. What is on the device stays, to be read by whoever uses it, until it is wiped. */
export async function signOut(server: Server): Promise<void> {
  try {
    await sendRequest(server, "/v1/sign-out", { method: "POST" });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
  }
}

/** `current` is needed where there is a password already. Every other browser is signed out. */
export async function changePassword(server: Server, current: string, password: string): Promise<void> {
  const body = JSON.stringify({ new: password, current: current || null });
  await sendRequest(server, "/v1/password", { method: "POST", body });
}

/** As the server knows the account now. */
export function profile(server: Server): Promise<Profile> {
  return requestJson<Profile>(server, "/v1/me");
}

/** The accounts that have rows on this device, whoever used it last first. */
export async function deviceAccounts(device: DeviceDatabase): Promise<DeviceAccount[]> {
  return device.accounts.orderBy("usedAt").reverse().toArray();
}

/** Opens this account, of those kept here, the next time: also when the server says that somebody else is here. */
export async function selectDeviceAccount(device: DeviceDatabase, userId: string): Promise<void> {
  await device.accounts.update(userId, { usedAt: now(), isWanted: true });
}

/** Takes an account from this device, when no tab has it open. The server keeps what it has. */
export function removeFromDevice(device: DeviceDatabase, userId: string): Promise<void> {
  return withExclusive(userId, async () => {
    // If only some rows are removed, the next sync starts from zero and restores the rest.
    await device.accounts.update(userId, { round: crypto.randomUUID() }).catch(console.error); // the disk may be full
    await removeRecords(userId);
    await device.deleteAccount(userId); // after the rows: as long as any are here, the account stays listed
    await compact();
  });
}

/** What the server says takes its place beside what this device knows, which may change at the same moment. */
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

function toDeviceAccount({ userId, email, tier, limits, usage }: Profile): DeviceAccount {
  const at = now();
  return { userId, email, tier, limits, usedAt: at, ...(usage ? { usage: { ...usage, at } } : {}) };
}
