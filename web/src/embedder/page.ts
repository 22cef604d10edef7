/** A page with only the embedder, for tests. */

import * as embedder from "./embedder.ts";

declare global {
  interface Window {
    embedder: typeof embedder;
  }
}

window.embedder = embedder;
