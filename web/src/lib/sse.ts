/** Server-sent events out of pieces of text as they arrive (HTML standard, 9.2; only `event` and `data` are used). */

interface ServerEvent {
  event: string;
  data: string;
}

export class Events {
  #pieces: string[] = []; // of an event that is not whole yet

  /** The events that this piece completes. Comments, which only keep the connection open, are none. */
  feed(piece: string): ServerEvent[] {
    const seam = (this.#pieces.at(-1)?.slice(-1) ?? "") + piece;
    this.#pieces.push(piece);
    if (!seam.includes("\n\n")) return []; // a large event comes in many: looked through once
    const whole = this.#pieces.join("").split("\n\n");
    this.#pieces = [whole.pop() ?? ""];
    return whole.flatMap((text) => parsed(text) ?? []);
  }
}

function parsed(text: string): ServerEvent | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /u, ""));
    else if (line.startsWith("event:")) event = line.slice(6).trim();
  }
  return data.length ? { event, data: data.join("\n") } : undefined;
}
