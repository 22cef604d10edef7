/** Parse server-sent events from text that arrives in pieces. */

import { createParser } from "eventsource-parser";

interface ServerEvent {
  /** "message" for an event without a name, as in the HTML standard. */
  event: string;
  data: string;
}

export class SseParser {
  #events: ServerEvent[] = [];
  readonly #parser = createParser({
    onEvent: ({ event = "message", data }) => void this.#events.push({ event, data }),
  });

  /** Return the events that this piece of text completes. */
  feed(chunk: string): ServerEvent[] {
    this.#parser.feed(chunk);
    return this.#events.splice(0);
  }
}
