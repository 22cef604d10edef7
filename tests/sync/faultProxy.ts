/** A proxy in front of the real server that records requests and can reject, replace or stall them. */

import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Harness } from "./harness.ts";

export interface RecordedRequest {
  at: number;
  path: string;
  body: string;
}

/** A response with status 200 instead of the server's. */
export interface ForgedResponse {
  type: string;
  body: string | Buffer;
}

export interface Rejection {
  status: number;
  retryAfter?: string;
  code?: string;
}

export class FaultProxy {
  readonly requests: RecordedRequest[] = [];
  /** Returns how to reject a request, or undefined to forward it. */
  reject: (path: string, body: string) => Rejection | undefined = () => undefined;
  /** Returns a response to send instead of the server's. */
  forge: (path: string) => ForgedResponse | undefined = () => undefined;
  /** Returns true for requests that never get a response. */
  stall: (path: string) => boolean = () => false;
  readonly #server: Server;
  readonly #harness: Harness;

  private constructor(harness: Harness) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => this.#handle(request, response, Buffer.concat(chunks).toString()));
    });
    this.#harness = harness;
  }

  #handle({ url, method, headers }: IncomingMessage, response: ServerResponse, body: string): void {
    const path = url!;
    this.requests.push({ at: performance.now(), path, body });
    if (this.stall(path)) return;
    const rejection = this.reject(path, body);
    if (rejection) {
      const { status, retryAfter, code = "BUSY" } = rejection;
      response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter });
      return void response.end(JSON.stringify({ code, detail: "Later." }));
    }
    const forged = this.forge(path);
    if (forged) return void response.writeHead(200, { "content-type": forged.type }).end(forged.body);
    const options = { method, headers } as RequestOptions;
    const upstream = sendRequest(this.#harness.url + path, options, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    upstream.end(body);
    for (const end of [response, upstream]) end.on("close", () => upstream.destroy()).on("error", () => {});
  }

  static async open(harness: Harness): Promise<FaultProxy> {
    const proxy = new FaultProxy(harness);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Return the number of requests whose path contains `part`. */
  count(part: string): number {
    return this.requests.filter(({ path }) => path.includes(part)).length;
  }

  /** Close all connections, including streams. */
  disconnect(): void {
    this.#server.closeAllConnections();
  }

  close(): void {
    this.disconnect();
    this.#server.close();
  }
}
