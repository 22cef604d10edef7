/** Requests to the server. Every refusal is an error with the server's stable `code` and its own words. */

export interface Wire {
  /** Origin of the server, such as `https://docs.example.org`; empty in the app, which the server itself serves. */
  readonly base: string;
  /** Extra headers, for clients that sign in with a token instead of the cookie. */
  readonly headers?: Record<string, string>;
}

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
  const answer = await fetch(wire.base + path, { credentials: "same-origin", ...init, headers });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export async function request<T>(wire: Wire, path: string, init?: RequestInit): Promise<T> {
  return (await (await open(wire, path, init)).json()) as T;
}

async function refusal(answer: Response): Promise<Refusal> {
  const problem = (await answer.json().catch(() => ({}))) as { code?: string; detail?: string };
  const wait = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new Refusal(
    answer.status,
    problem.code ?? "ERROR",
    problem.detail ?? `The server answered ${answer.status}.`,
    ...(Number.isFinite(wait) ? ([wait] as const) : ([] as const)),
  );
}
