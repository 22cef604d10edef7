/** What the server refused, for people: by its code, where its own words are meant for who writes programs. */

import { written } from "../../core/chat/storedSentences.ts";

const DUPLICATE =
  "You already have a conversation that another program knows by the same number. This one stays on this device: delete the other one and try again, or delete this one.";
const INVALID =
  "The server cannot take this as it is. It stays on this device only: change it, then try again. What the server said:";

export function refused({ code, message }: { code: string; message: string }): string {
  if (code === "DUPLICATE") return DUPLICATE;
  return code === "INVALID" && message !== written.refused ? `${INVALID} ${message}` : message;
}
