/** Stands before the real server: notes what is asked, and refuses or holds back what a test says. */

import {
  createServer,
  request as ask,
  type IncomingMessage,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Harness } from "./harness.ts";

export interface Asked {
  at: number;
  path: string;
  body: string;
}

/** An answer in the server's place. */
export interface Forged {
  type: string;
  body: string | Buffer;
}

export interface Refused {
  status: number;
  retryAfter?: string;
  code?: string;
}

export class Gate {
  readonly asked: Asked[] = [];
  /** What a request is refused with; undefined: it is let through. */
  refuses: (path: string, body: string) => Refused | undefined = () => undefined;
  /** What is answered in the server's place, with status 200. */
  forges: (path: string) => Forged | undefined = () => undefined;
  /** What is taken and never answered. */
  holds: (path: string) => boolean = () => false;
  readonly #server: Server;
  readonly #harness: Harness;

  private constructor(harness: Harness) {
    this.#server = createServer((request, response) => {
      const read: Buffer[] = [];
      request.on("data", (bytes: Buffer) => read.push(bytes));
      request.on("end", () => this.#answer(request, response, Buffer.concat(read).toString()));
    });
    this.#harness = harness;
  }

  #answer({ url, method, headers }: IncomingMessage, response: ServerResponse, body: string): void {
    const path = url!;
    this.asked.push({ at: performance.now(), path, body });
    if (this.holds(path)) return;
    const refused = this.refuses(path, body);
    if (refused) {
      const { status, retryAfter, code = "BUSY" } = refused;
      response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter });
      return void response.end(JSON.stringify({ code, detail: "Later." }));
    }
    const forged = this.forges(path);
    if (forged) return void response.writeHead(200, { "content-type": forged.type }).end(forged.body);
    const onward = ask(this.#harness.url + path, { method, headers } as RequestOptions, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.end(body);
    for (const end of [response, onward]) end.on("close", () => onward.destroy()).on("error", () => {});
  }

  static async open(harness: Harness): Promise<Gate> {
    const gate = new Gate(harness);
    await new Promise<void>((resolve) => gate.#server.listen(0, "127.0.0.1", resolve));
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How often something was asked whose path has this in it. */
  times(part: string): number {
    return this.asked.filter(({ path }) => path.includes(part)).length;
  }

  /** Ends all connections, the stream too. */
  breakOff(): void {
    this.#server.closeAllConnections();
  }

  close(): void {
    this.breakOff();
    this.#server.close();
  }
}
