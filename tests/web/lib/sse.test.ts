/** Server-sent events, as the server frames them. */

import { SseParser } from "../../../web/src/lib/sse.ts";

const STREAM = ': hello\n\ndata: {"a":1}\n\nevent: progress\ndata: 2\n\n: hb\n\ndata: one\ndata: two\n\n';
const EVENTS = [
  { event: "message", data: '{"a":1}' },
  { event: "progress", data: "2" },
  { event: "message", data: "one\ntwo" },
];

test("an event without a name is a message event", () => {
  expect(new SseParser().feed(STREAM)).toEqual(EVENTS);
});

test("events are parsed whole however the stream is split", () => {
  for (let size = 1; size < STREAM.length; size++) {
    const parser = new SseParser();
    const chunks = Array.from({ length: Math.ceil(STREAM.length / size) }, (_, n) =>
      STREAM.slice(n * size, (n + 1) * size),
    );
    expect(chunks.flatMap((chunk) => parser.feed(chunk))).toEqual(EVENTS);
  }
});
