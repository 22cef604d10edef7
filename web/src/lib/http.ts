/** Requests to the server. An error response becomes an ApiError with the server's stable `code` and its message. */

import { IDLE_TIMEOUT_MS, withIdleTimeout } from "./idleTimeout.ts";

export interface Server {
  /** Origin, such as `https://docs.example.org`. Empty in the app, because the server also serves the app. */
  readonly base: string;
  /** Extra headers, for instance the account of the requests, or a token instead of the cookie. */
  readonly headers?: Record<string, string>;
}

/**
 * Server for requests of any account: the cookie determines the account. Use `AccountContext.server` for requests of
 * the open account.
 */
export const ANY_ACCOUNT: Server = { base: "" };

export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterS?: number,
  ) {
    super(message);
  }
}

/** Send a request and return the response as soon as its headers arrive. Throw an ApiError for an error status. */
export async function openResponse(server: Server, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { "content-type": "application/json", ...server.headers };
  const response = await fetch(server.base + path, { ...init, headers }).catch(asUnreachable);
  if (!response.ok) throw await toApiError(response);
  return response;
}

/** Send a request whose response body the caller does not read. */
export function sendRequest(server: Server, path: string, init: RequestInit = {}): Promise<Response> {
  return withIdleTimeout(IDLE_TIMEOUT_MS, init.signal, (signal) =>
    openResponse(server, path, { ...init, signal }),
  );
}

/**
 * Return the JSON of a response. Throw if no data arrives for `idleTimeoutMs`; the total time is not limited.
 */
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
    for (let chunk = await next(); !chunk.done; chunk = await next()) {
      resetTimer();
      text += chunk.value;
    }
    return parseJson<T>(text);
  });
}

function parseJson<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw notOurServer(cause);
  }
}

/** Return the error for a response from a captive portal or a proxy instead of the server. */
export function notOurServer(cause?: unknown): Error {
  return unreachable("The response did not come from the server.", cause);
}

/**
 * Replace the TypeError of a failed fetch by an error with another name, because a bug in the app is a TypeError, too.
 */
function asUnreachable(error: unknown): never {
  throw error instanceof TypeError ? unreachable(error.message, error) : error;
}

function unreachable(message: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: "Unreachable" });
}

/** Error code of a server that is too old for this app. The error does not mean that the server is busy. */
export const TOO_NEW = "TOO_NEW";

/** Return whether the server, or a proxy in front of it, is overloaded and sends Retry-After. */
export function isBusy(error: unknown): error is ApiError & { retryAfterS: number } {
  if (!(error instanceof ApiError) || error.retryAfterS === undefined) return false;
  return [429, 503].includes(error.status) && error.code !== TOO_NEW;
}

/** Error code for an error response without a code of the server, for instance from a proxy. */
export const UNKNOWN_CODE = "ERROR";

async function toApiError(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as { code?: string; detail?: string };
  const retryAfterS = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiError(
    response.status,
    problem.code ?? UNKNOWN_CODE,
    problem.detail ?? `The server responded with status ${response.status}.`,
    Number.isFinite(retryAfterS) ? retryAfterS : undefined,
  );
}
