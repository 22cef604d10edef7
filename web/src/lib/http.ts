/** Requests to the server. Every refusal is an error with the server's stable `code` and its own words. */

import { IDLE_TIMEOUT_MS, withIdleTimeout } from "./idleTimeout.ts";

export interface Server {
  /** Origin of the server, such as `https://docs.example.org`; empty in the app, which the server itself serves. */
  readonly base: string;
  /** Extra headers, for clients that sign in with a token instead of the cookie. */
  readonly headers?: Record<string, string>;
}

/** For whoever is signed in. What belongs to one account goes over the wire of its house. */
export const ANY_ACCOUNT: Server = { base: "" };

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterS?: number,
  ) {
    super(message);
    this.name = "Refusal";
  }
}

export async function openResponse(server: Server, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { "content-type": "application/json", ...server.headers };
  const response = await fetch(server.base + path, { ...init, headers }).catch(asUnreachable);
  if (!response.ok) throw await toApiError(response);
  return response;
}

/** A request whose answer is its status. */
export function sendRequest(server: Server, path: string, init: RequestInit = {}): Promise<Response> {
  return withIdleTimeout(IDLE_TIMEOUT_MS, init.signal, (signal) =>
    openResponse(server, path, { ...init, signal }),
  );
}

/** A request whose answer is JSON. It may be long and slow: it must not stop coming for `silenceMs`. */
export function requestJson<T>(
  server: Server,
  path: string,
  init: RequestInit = {},
  idleTimeoutMs = IDLE_TIMEOUT_MS,
): Promise<T> {
  return withIdleTimeout(idleTimeoutMs, init.signal, async (signal, resetTimer) => {
    const response = await openResponse(server, path, { ...init, signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const next = () => reader.read().catch(asUnreachable);
    for (let read = await next(); !read.done; read = await next()) {
      resetTimer();
      text += read.value;
    }
    return parseJson<T>(text);
  });
}

/** What is no JSON the server did not say. */
function parseJson<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw notOurServer(cause);
  }
}

/** Some network answered that wants a sign-in first, or a proxy: the server was not reached. */
export function notOurServer(cause?: unknown): Error {
  return unreachable("The answer is not the server's.", cause);
}

/** A request that found no server, or lost it on the way, fails with an error that a mistake in the app has, too. */
function asUnreachable(error: unknown): never {
  throw error instanceof TypeError ? unreachable(error.message, error) : error;
}

function unreachable(message: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: "Unreachable" });
}

/** What it says to an app that is newer than itself: that takes as long as it takes, and is nothing of its load. */
export const TOO_NEW = "TOO_NEW";

/** Whether the server, or what stands before it, has too much to do and says when it wants to be asked again. */
export function isBusy(error: unknown): error is ApiError & { retryAfterS: number } {
  if (!(error instanceof ApiError) || error.retryAfterS === undefined) return false;
  return [429, 503].includes(error.status) && error.code !== TOO_NEW;
}

/** A refusal that is not in the server's words: something before it has spoken. */
export const UNKNOWN_CODE = "ERROR";

async function toApiError(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as { code?: string; detail?: string };
  const retryAfterS = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiError(
    response.status,
    problem.code ?? UNKNOWN_CODE,
    problem.detail ?? `The server answered ${response.status}.`,
    Number.isFinite(retryAfterS) ? retryAfterS : undefined,
  );
}
