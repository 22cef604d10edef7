/** Server-sent events from text that arrives in chunks. */

import { createParser, type EventSourceMessage } from "eventsource-parser";

export class SseParser {
  #events: EventSourceMessage[] = [];
  readonly #parser = createParser({ onEvent: (event) => void this.#events.push(event) });

  /** Return the events that this chunk completes. */
  feed(chunk: string): EventSourceMessage[] {
    this.#parser.feed(chunk);
    return this.#events.splice(0);
  }
}
