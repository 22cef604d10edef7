import { getEventListeners } from "node:events";
import { PriorityQueue } from "../../../web/src/embedder/priorityQueue.ts";

/** Create a queue in which each call of `next` ends the oldest run. */
function controlledQueue() {
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const queue = new PriorityQueue((text) => {
    started.push(text);
    return new Promise<string>((resolve) => ends.push(() => resolve(text.toUpperCase())));
  });
  const next = async () => {
    ends.shift()!();
    await new Promise((resolve) => setTimeout(resolve));
  };
  return { queue, started, next };
}

test("passages run one at a time in order", async () => {
  const { queue, started, next } = controlledQueue();
  const results = Promise.all(["a", "b", "c"].map((text) => queue.passage(text)));
  expect(started).toEqual(["a"]);
  await next();
  expect(started).toEqual(["a", "b"]);
  await next();
  await next();
  expect(await results).toEqual(["A", "B", "C"]);
});

test("a question runs before all waiting passages", async () => {
  const { queue, started, next } = controlledQueue();
  void Promise.all(["a", "b", "c"].map((text) => queue.passage(text)));
  void queue.question("q1");
  void queue.question("q2");
  for (let n = 0; n < 4; n++) await next();
  expect(started).toEqual(["a", "q1", "q2", "b", "c"]);
});

test("an aborted job is removed from the queue", async () => {
  const { queue, started, next } = controlledQueue();
  const deleted = new AbortController();
  const results = ["a", "b", "c"].map((text) => queue.passage(text, deleted.signal));
  const other = queue.passage("d");
  deleted.abort(new Error("the document was deleted"));
  for (const result of results) await expect(result).rejects.toThrow("the document was deleted");
  await expect(queue.passage("e", deleted.signal)).rejects.toThrow("the document was deleted");
  await next();
  expect(started).toEqual(["a", "d"]);
  await next();
  expect(await other).toBe("D");
});

test("a failed run rejects only its caller", async () => {
  const queue = new PriorityQueue((text) =>
    text === "bad" ? Promise.reject(new Error("no")) : Promise.resolve(text),
  );
  const [bad, good] = await Promise.allSettled([queue.passage("bad"), queue.passage("good")]);
  expect([bad.status, good.status]).toEqual(["rejected", "fulfilled"]);
});

test("a finished job removes its abort listener", async () => {
  const queue = new PriorityQueue((text) =>
    text === "bad" ? Promise.reject(new Error("no")) : Promise.resolve(text),
  );
  const page = new AbortController();
  const jobs = ["a", "bad", "b"].map((text) => queue.passage(text, page.signal));
  expect(getEventListeners(page.signal, "abort")).toHaveLength(3);
  await Promise.allSettled(jobs);
  expect(getEventListeners(page.signal, "abort")).toEqual([]);
});
