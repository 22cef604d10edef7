/** Starts a real server (see harness.py) for a test file or for several, and speaks to the door beside it. */

import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { env } from "node:process";
import { createInterface } from "node:readline";

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

/** Where a server is, the door beside it, and the file that it writes its log to. */
export interface Place {
  url: string;
  admin: string;
  log: string;
}

const TOLD_LINES = 100;

export class Harness {
  private constructor(
    readonly place: Place,
    private readonly process?: ChildProcess,
  ) {}

  get url(): string {
    return this.place.url;
  }

  /** The one that all files share which want these settings (see shared.ts). None of them stops it or makes it fail. */
  static async shared(settings: Settings = {}): Promise<Harness> {
    const body = JSON.stringify(settings);
    const answer = await fetch(env["VADEMECUM_SHARED"]!, { method: "POST", body });
    if (!answer.ok) throw new Error(await answer.text());
    return new Harness((await answer.json()) as Place);
  }

  static async start(settings: Settings = {}): Promise<Harness> {
    const process = spawn(".venv/bin/python", ["tests/sync/harness.py"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...env, ...settings },
    });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: process.stdout }).once("line", resolve);
      process.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
    });
    return new Harness(JSON.parse(line) as Place, process);
  }

  async stop(): Promise<void> {
    const { process } = this;
    if (!process) return; // others may be at it
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.stdin?.end();
    await ended;
  }

  /** What the server said last: for a test that failed. */
  confess(): void {
    console.error(readFileSync(this.place.log, "utf8").split("\n").slice(-TOLD_LINES).join("\n"));
  }

  async ask<T>(verb: string, body: object = {}): Promise<T> {
    const answer = await fetch(`${this.place.admin}/${verb}`, { method: "POST", body: JSON.stringify(body) });
    const result = (await answer.json()) as T & { error?: string };
    if (!answer.ok) throw new Error(`${verb}: ${result.error}`);
    return result;
  }

  user(tier = "JIGGA", password?: string): Promise<NewUser> {
    return this.ask<NewUser>("user", { tier, password });
  }

  /** A request of the API, as this user. */
  async call<T>(user: User, path: string, init: RequestInit = {}): Promise<T> {
    const headers = { authorization: `Bearer ${user.token}`, "content-type": "application/json" };
    const answer = await fetch(this.url + path, { ...init, headers: { ...headers, ...init.headers } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** All rows of a collection as the server has them, tombstones too. */
  async rows(user: User, collection: string): Promise<Record<string, any>[]> {
    const all: Record<string, any>[] = [];
    for (let lwt = 0; ;) {
      const page = await this.call<{ documents: Record<string, any>[]; checkpoint: { lwt: number } }>(
        user,
        `/v1/sync/${collection}/0/pull?lwt=${lwt}&limit=1000`,
      );
      all.push(...page.documents);
      if (page.documents.length < 1000) return all;
      lwt = page.checkpoint.lwt;
    }
  }

  async live(user: User, collection: string): Promise<Record<string, any>[]> {
    return (await this.rows(user, collection)).filter((row) => !row["_deleted"]);
  }
}
