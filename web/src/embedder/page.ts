/** The page with the embedder alone. */

import * as embedder from "./embedder.ts";

declare global {
  interface Window {
    embedder: typeof embedder;
  }
}

window.embedder = embedder;
