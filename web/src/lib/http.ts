/** Requests to the server. Every refusal is an error with the server's stable `code` and its own words. */

import { SILENCE_MS, unlessSilent } from "./idleTimeout.ts";

export interface Wire {
  /** Origin of the server, such as `https://docs.example.org`; empty in the app, which the server itself serves. */
  readonly base: string;
  /** Extra headers, for clients that sign in with a token instead of the cookie. */
  readonly headers?: Record<string, string>;
}

/** For whoever is signed in. What belongs to one account goes over the wire of its house. */
export const WHOEVER: Wire = { base: "" };

export class Refusal extends Error {
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

export async function open(wire: Wire, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { "content-type": "application/json", ...wire.headers };
  const answer = await fetch(wire.base + path, { ...init, headers }).catch(lost);
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** A request whose answer is its status. */
export function send(wire: Wire, path: string, init: RequestInit = {}): Promise<Response> {
  return unlessSilent(SILENCE_MS, init.signal, (signal) => open(wire, path, { ...init, signal }));
}

/** A request whose answer is JSON. It may be long and slow: it must not stop coming for `silenceMs`. */
export function request<T>(
  wire: Wire,
  path: string,
  init: RequestInit = {},
  silenceMs = SILENCE_MS,
): Promise<T> {
  return unlessSilent(silenceMs, init.signal, async (signal, heard) => {
    const answer = await open(wire, path, { ...init, signal });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const next = () => reader.read().catch(lost);
    for (let read = await next(); !read.done; read = await next()) {
      heard();
      text += read.value;
    }
    return parsed<T>(text);
  });
}

/** What is no JSON the server did not say. */
function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw foreign(cause);
  }
}

/** Some network answered that wants a sign-in first, or a proxy: the server was not reached. */
export function foreign(cause?: unknown): Error {
  return unreachable("The answer is not the server's.", cause);
}

/** A request that found no server, or lost it on the way, fails with an error that a mistake in the app has, too. */
function lost(error: unknown): never {
  throw error instanceof TypeError ? unreachable(error.message, error) : error;
}

function unreachable(message: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: "Unreachable" });
}

/** What it says to an app that is newer than itself: that takes as long as it takes, and is nothing of its load. */
export const TOO_NEW = "TOO_NEW";

/** Whether the server, or what stands before it, has too much to do and says when it wants to be asked again. */
export function isBusy(error: unknown): error is Refusal & { retryAfterS: number } {
  if (!(error instanceof Refusal) || error.retryAfterS === undefined) return false;
  return [429, 503].includes(error.status) && error.code !== TOO_NEW;
}

/** A refusal that is not in the server's words: something before it has spoken. */
export const FOREIGN = "ERROR";

async function refusal(answer: Response): Promise<Refusal> {
  const problem = (await answer.json().catch(() => ({}))) as { code?: string; detail?: string };
  const wait = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new Refusal(
    answer.status,
    problem.code ?? FOREIGN,
    problem.detail ?? `The server answered ${answer.status}.`,
    Number.isFinite(wait) ? wait : undefined,
  );
}
