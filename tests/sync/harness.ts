/** Start a real server (see harness.py) for one or several test files, and control it through its admin port. */

import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { env } from "node:process";
import { createInterface } from "node:readline";
import { syncPath } from "./wire.ts";

export interface User {
  userId: string;
  token: string;
}

export interface NewUser extends User {
  /** The path of a one-time sign-in link. */
  link: string;
}

/** Environment variables of a server. */
export type Settings = Record<string, string>;

/** The address of a server, its admin address, and the path of its log. */
export interface Address {
  url: string;
  admin: string;
  log: string;
}

const LOG_LINES = 100;

export class Harness {
  private constructor(
    readonly address: Address,
    private readonly process?: ChildProcess,
  ) {}

  get url(): string {
    return this.address.url;
  }

  /** Return the server that all files with these settings share (see shared.ts). Tests must not stop or break it. */
  static async shared(settings: Settings = {}): Promise<Harness> {
    const body = JSON.stringify(settings);
    const response = await fetch(env["VADEMECUM_SHARED"]!, { method: "POST", body });
    if (!response.ok) throw new Error(await response.text());
    return new Harness((await response.json()) as Address);
  }

  static async start(settings: Settings = {}): Promise<Harness> {
    const process = spawn(".venv/bin/python", ["tests/sync/harness.py"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...env, ...settings },
    });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: process.stdout }).once("line", resolve);
      process.once("exit", (code) => reject(new Error(`The server exited with ${code}.`)));
    });
    return new Harness(JSON.parse(line) as Address, process);
  }

  async stop(): Promise<void> {
    const { process } = this;
    if (!process) return; // a shared server, which other files may use
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.stdin?.end();
    await ended;
  }

  /** Print the end of the server's log, for a failed test. */
  printLog(): void {
    console.error(readFileSync(this.address.log, "utf8").split("\n").slice(-LOG_LINES).join("\n"));
  }

  /** Send a command to the admin port (see harness.py). */
  async control<T>(command: string, body: object = {}): Promise<T> {
    const init = { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${this.address.admin}/${command}`, init);
    const result = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(`${command}: ${result.error}`);
    return result;
  }

  user(tier = "JIGGA", password?: string): Promise<NewUser> {
    return this.control<NewUser>("user", { tier, password });
  }

  /** Send an API request as this user and return the JSON. */
  async request<T>(user: User, path: string, init: RequestInit = {}): Promise<T> {
    const headers = { authorization: `Bearer ${user.token}`, "content-type": "application/json" };
    const response = await fetch(this.url + path, { ...init, headers: { ...headers, ...init.headers } });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Return all rows of a collection on the server, tombstones included. */
  async rows(user: User, collection: string): Promise<Record<string, any>[]> {
    const all: Record<string, any>[] = [];
    for (let lwt = 0; ;) {
      const page = await this.request<{ documents: Record<string, any>[]; checkpoint: { lwt: number } }>(
        user,
        `${syncPath(collection)}/pull?lwt=${lwt}&limit=1000`,
      );
      all.push(...page.documents);
      if (page.documents.length < 1000) return all;
      lwt = page.checkpoint.lwt;
    }
  }

  async liveRows(user: User, collection: string): Promise<Record<string, any>[]> {
    return (await this.rows(user, collection)).filter((row) => !row["_deleted"]);
  }
}
