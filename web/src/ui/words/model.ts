/** Sentences of the model that finds by meaning. Short and concrete. */

import { count } from "./count.ts";
import { bytes } from "./measures.ts";

export const model = {
  title: "Search by meaning",
  unknown: "Looking for the model. Search goes by words until it is here.",
  none: "The server has no model, so search goes by words alone.",
  loading: (loaded: number, total: number) =>
    `Fetching the model: ${bytes(loaded)} of ${bytes(total)}. Search goes by words until it is here.`,
  speed: (perSecond: number) => `${bytes(perSecond)} a second`,
  ready: (name: string) => `${name} is on this device.`,
  failed: "The model could not be fetched. What has arrived is kept. Search goes by words until it is here.",
  again: "Go on",
  reembedding: (done: number, of: number) =>
    `The server's model changed: ${done.toLocaleString()} of ${count(of, "block", "blocks")} embedded anew. Search goes on meanwhile.`,
} as const;
