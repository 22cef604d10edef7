/** Sentences of the model that finds by meaning. Short and concrete. */

import { count } from "./count.ts";
import { bytes } from "./measures.ts";
import { LOCALE } from "./locale.ts";

export const model = {
  title: "Search by meaning",
  unknown: "Looking for the model that finds by meaning. Search goes by words until it is here.",
  none: "The server has no model that finds by meaning, so search goes by words alone.",
  loading: (loaded: number, total: number) =>
    `Fetching the model that finds by meaning: ${bytes(loaded)} of ${bytes(total)}. Search goes by words until it is here.`,
  speed: (perSecond: number) => `${bytes(perSecond)} a second`,
  ready: (name: string) => `Search by meaning works on this device, with the model ${name}.`,
  failed:
    "The model that finds by meaning could not be fetched. What has arrived is kept. Search goes by words until it is here.",
  again: "Go on",
  reembedding: (done: number, of: number) =>
    `The server finds by meaning with another model now: ${done.toLocaleString(LOCALE)} of ${count(of, "part", "parts")} of your documents are prepared for it. Search goes on meanwhile.`,
} as const;
