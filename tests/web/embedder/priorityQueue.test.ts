/** The lanes in front of the embedder's worker. */

import { getEventListeners } from "node:events";
import { Queue } from "../../../web/src/embedder/priorityQueue.ts";

/** A queue whose runs end when the test says so. */
function held() {
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const queue = new Queue((text) => {
    began.push(text);
    return new Promise<string>((resolve) => ends.push(() => resolve(text.toUpperCase())));
  });
  const next = async () => {
    ends.shift()!();
    await new Promise((resolve) => setTimeout(resolve));
  };
  return { queue, began, next };
}

test("one text runs at a time, and passages keep their order", async () => {
  const { queue, began, next } = held();
  const results = Promise.all(["a", "b", "c"].map((text) => queue.passage(text)));
  expect(began).toEqual(["a"]);
  await next();
  expect(began).toEqual(["a", "b"]);
  await next();
  await next();
  expect(await results).toEqual(["A", "B", "C"]);
});

test("a question overtakes every passage that waits", async () => {
  const { queue, began, next } = held();
  void Promise.all(["a", "b", "c"].map((text) => queue.passage(text)));
  void queue.question("q1");
  void queue.question("q2");
  for (let n = 0; n < 4; n++) await next();
  expect(began).toEqual(["a", "q1", "q2", "b", "c"]);
});

test("what is cancelled leaves the queue, and what runs is not waited for", async () => {
  const { queue, began, next } = held();
  const deleted = new AbortController();
  const results = ["a", "b", "c"].map((text) => queue.passage(text, deleted.signal));
  const other = queue.passage("d");
  deleted.abort(new Error("the document was deleted"));
  for (const result of results) await expect(result).rejects.toThrow("the document was deleted");
  await expect(queue.passage("e", deleted.signal)).rejects.toThrow("the document was deleted");
  await next();
  expect(began).toEqual(["a", "d"]);
  await next();
  expect(await other).toBe("D");
});

test("a run that fails is its caller's alone", async () => {
  const queue = new Queue((text) =>
    text === "bad" ? Promise.reject(new Error("no")) : Promise.resolve(text),
  );
  const [bad, good] = await Promise.allSettled([queue.passage("bad"), queue.passage("good")]);
  expect([bad.status, good.status]).toEqual(["rejected", "fulfilled"]);
});

test("a job that has ended listens no more whether it is cancelled", async () => {
  const queue = new Queue((text) =>
    text === "bad" ? Promise.reject(new Error("no")) : Promise.resolve(text),
  );
  const page = new AbortController();
  const jobs = ["a", "bad", "b"].map((text) => queue.passage(text, page.signal));
  expect(getEventListeners(page.signal, "abort")).toHaveLength(3);
  await Promise.allSettled(jobs);
  expect(getEventListeners(page.signal, "abort")).toEqual([]);
});
