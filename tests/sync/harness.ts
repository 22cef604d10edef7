/** Starts a real server for a test file (see harness.py) and speaks to the door beside it. */

import { spawn, type ChildProcess } from "node:child_process";
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

export class Harness {
  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
    private readonly door: string,
  ) {}

  /** `settings`: environment variables of the server. */
  static async start(settings: Record<string, string> = {}): Promise<Harness> {
    const process = spawn(".venv/bin/python", ["tests/sync/harness.py"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...env, ...settings },
    });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: process.stdout }).once("line", resolve);
      process.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
    });
    const { url, admin } = JSON.parse(line) as { url: string; admin: string };
    return new Harness(process, url, admin);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.stdin?.end();
    await ended;
  }

  async ask<T>(verb: string, body: object = {}): Promise<T> {
    const answer = await fetch(`${this.door}/${verb}`, { method: "POST", body: JSON.stringify(body) });
    const result = (await answer.json()) as T & { error?: string };
    if (!answer.ok) throw new Error(`${verb}: ${result.error}`);
    return result;
  }

  user(tier = "JIGGA"): Promise<NewUser> {
    return this.ask<NewUser>("user", { tier });
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
