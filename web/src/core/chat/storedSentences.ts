/** Sentences that the app writes into rows. They are stored and synced like any other text of a chat. */

import { NOT_FOUND } from "./notFoundAnswer.ts";

export const storedSentences = {
  untitled: "New conversation",
  noSearch: "No assistant can be reached, and a FREE account's questions do not look into documents.",
  noDocuments: "This conversation has no documents yet. Add one, and ask again.",
  notFound: (searched: readonly string[]) => `${NOT_FOUND} Searched: ${searched.join(", ")}.`,
  wordsOnly: "Searched by words alone: the model that understands meaning is not ready on this device.",
  without: (names: readonly string[]) =>
    `This answer is without ${names.join(", ")}: not read when it was given.`,
  partly: (names: readonly string[]) =>
    `Not wholly ready when this answer was given, so something in it may have been missed: ${names.join(", ")}.`,
  refused:
    "The server cannot take this as it is: it is too large, or has broken characters in it. It is kept on this device only; change it, then try again.",
  remembered: "Remembered, not from your documents:",
} as const;
