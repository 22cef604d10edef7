/** Retry requests to a busy server after the requested delay, for a limited time. Uses real HTTP. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { streamAnswer, type AnswerEnding } from "../../../../web/src/backend/chat/assistantClient.ts";
import { isTemporary, retryWhileBusy } from "../../../../web/src/lib/backoff.ts";

type Refused = [status: number, code: string, retryAfter?: string];

let server: Server;
let requestTimes: number[] = [];
let ending: AnswerEnding;
let finish = "stop";
let waits: number[] = [];
/** Called during each delay. By default it ends the delay, so that no test waits for seconds. */
let duringDelay: (seconds: number) => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  duringDelay = (seconds) => vi.advanceTimersByTime(seconds * 1000);
});

/** Ask a server that rejects as many requests as `refusals` has and then answers "Yes.". Return the answer. */
async function askServer(refusals: Refused[], patienceS: number, signal = new AbortController().signal) {
  [requestTimes, waits] = [[], []];
  server = createServer((_, response) => {
    requestTimes.push(performance.now());
    const refused = refusals[requestTimes.length - 1];
    if (!refused) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(
        'event: delta\ndata: {"text":"Yes."}\n\nevent: done\ndata: ' + JSON.stringify({ finish }) + "\n\n",
      );
      return;
    }
    const [status, code, wait] = refused;
    response.writeHead(status, wait === undefined ? {} : { "retry-after": wait });
    response.end(JSON.stringify({ code, detail: "Later." }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const wire = { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, headers: {} };
  const question = { query: "rent?", sessionId: "s1", episodeId: "e1" };
  const parts: string[] = [];
  const listener = {
    onContext: () => {},
    onDelta: (text: string) => void parts.push(text),
    onRestart: () => void parts.splice(0),
  };
  const wait = (seconds: number) => {
    waits.push(seconds);
    if (seconds > 0) setImmediate(duringDelay, seconds); // after the delay has started
  };
  ending = await retryWhileBusy(
    () => streamAnswer(wire, question, listener, signal),
    signal,
    wait,
    patienceS,
  );
  return parts.join("");
}

afterEach(() => {
  vi.useRealTimers();
  server.closeAllConnections();
  server.close();
});

test.each([
  ["stop", "whole"],
  ["other", "whole"],
  ["length", "cut"],
  ["content_filter", "cut"],
])("an answer with the finish reason %s ends as %s", async (why, how) => {
  finish = why;
  expect(await askServer([], 0)).toBe("Yes.");
  expect(ending).toBe(how);
});

test.each<Refused>([
  [429, "RATE_LIMITED", "1"],
  [503, "ASSISTANT_BUSY", "1"],
  [503, "BUSY", "0"],
])("the response %i %s is retried after its delay", async (...refused) => {
  expect(await askServer([refused, refused], 60)).toBe("Yes.");
  expect(requestTimes).toHaveLength(3);
  expect(requestTimes[2]! - requestTimes[0]!).toBe(2_000);
  expect(waits).toEqual([1, 0, 1, 0]); // the caller is notified when each delay starts and ends
});

test("a default delay applies without Retry-After", async () => {
  await expect(askServer([[429, "RATE_LIMITED"]], 2)).rejects.toMatchObject({ code: "RATE_LIMITED" });
  expect(requestTimes).toHaveLength(1);
});

test("retries stop at the total time limit", async () => {
  const refused: Refused = [429, "RATE_LIMITED", "1"];
  const error = await askServer(Array(9).fill(refused), 2).catch((reason: unknown) => reason);
  expect([isTemporary(error), requestTimes.length]).toEqual([true, 3]);
});

test("a delay longer than the time limit is not started", async () => {
  await expect(askServer([[503, "ASSISTANT_BUSY", "3600"]], 60)).rejects.toMatchObject({ status: 503 });
  expect(requestTimes).toHaveLength(1);
});

test.each<Refused>([
  [400, "BAD_REQUEST"],
  [403, "TIER", "1"],
  [502, "ASSISTANT_KEY", "1"],
  [503, "STOPPING", "1"],
])("the response %i %s is not retried", async (...refused) => {
  const error = await askServer([refused], 60).catch((reason: unknown) => reason);
  expect([isTemporary(error), requestTimes.length]).toEqual([false, 1]);
});

test("stopping the answer ends the delay", { timeout: 10_000 }, async () => {
  const stop = new AbortController();
  duringDelay = () => stop.abort();
  const waiting = askServer([[429, "RATE_LIMITED", "3000"]], 4_000, stop.signal);
  await expect(waiting).rejects.toMatchObject({ code: "RATE_LIMITED" });
  expect(requestTimes).toHaveLength(1);
});
