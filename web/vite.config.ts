/** Build configuration of the app. The output in server/vademecum/web/ is served by the server and is in the wheel. */

import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";
import { compileCatalog } from "./compileCatalog.ts";
import { serviceWorker } from "./serviceWorker.ts";

export default defineConfig({
  root: import.meta.dirname,
  logLevel: "warn",
  plugins: [react(), compileCatalog(), serviceWorker],
  resolve: {
    alias: [
      // The build for current browsers is 2 kB smaller.
      { find: "dexie", replacement: "dexie/dist/modern/dexie.min.mjs" },
      // The messages are parsed while the app is built, so the page does not need the parser (8 kB).
      {
        find: "@formatjs/icu-messageformat-parser",
        replacement: "@formatjs/icu-messageformat-parser/no-parser.js",
      },
    ],
    // Keep onnxruntime's loader in a separate file, because its threads are workers that load this file again.
    conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions],
  },
  worker: { format: "es" },
  build: {
    outDir: "../server/vademecum/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: ["web/index.html", "web/embedder.html"],
      checks: { bundlerTimings: false }, // `make install` should not print the time of each plugin
      // Put the initial load into one file, which compresses better than twenty.
      output: {
        codeSplitting: { groups: [{ name: "page", tags: ["$initial"], test: /^(?!.*[\\/]embedder)/u }] },
      },
    },
  },
});
