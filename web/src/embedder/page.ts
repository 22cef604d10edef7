/** Make the embedder available on a page of its own, for tests. */

import * as embedder from "./embedder.ts";

declare global {
  interface Window {
    embedder: typeof embedder;
  }
}

window.embedder = embedder;
