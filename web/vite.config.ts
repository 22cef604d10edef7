/** Build configuration of the app. The output in server/vademecum/web/ is served by the server and is in the wheel. */

import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";
import { VitePWA } from "vite-plugin-pwa";
import { compileCatalog } from "./compileCatalog.ts";

export default defineConfig({
  root: import.meta.dirname,
  logLevel: "warn",
  plugins: [
    react(),
    compileCatalog(),
    VitePWA({
      filename: "sw.js",
      registerType: "prompt", // the user decides when to reload, so that a new version does not interrupt writing
      injectRegister: null, // the app registers the service worker (see src/ui/appUpdate.ts)
      manifest: {
        name: "Vademecum",
        short_name: "Vademecum",
        description: "Chat with your own documents, with or without a network.",
        id: "/",
        start_url: "/",
        display: "standalone",
        background_color: "#ffffff",
        theme_color: "#ffffff",
        icons: [
          { src: "/icon.svg", sizes: "any", type: "image/svg+xml" },
          { src: "/icon-192.png", sizes: "192x192", type: "image/png" },
          { src: "/icon-512.png", sizes: "512x512", type: "image/png" },
          { src: "/icon-512-maskable.png", sizes: "512x512", type: "image/png", purpose: "maskable" },
        ],
      },
      workbox: {
        globPatterns: ["index.html", "icon*", "assets/*.{js,mjs,css,wasm,zip}"],
        maximumFileSizeToCacheInBytes: 32 * 2 ** 20, // above the size of onnxruntime, which offline search needs
        navigateFallback: "/index.html",
        navigateFallbackDenylist: [/^\/(v1|models|schema|health|ready|metrics|api)(\/|$)/u, /\.html$/u],
        cleanupOutdatedCaches: true,
        inlineWorkboxRuntime: true,
      },
    }),
  ],
  resolve: {
    alias: [
      // The build for current browsers is 2 kB smaller.
      { find: "dexie", replacement: "dexie/dist/modern/dexie.min.mjs" },
      // The messages are parsed while the app is built, so the page does not need the parser (8 kB).
      {
        find: "@formatjs/icu-messageformat-parser",
        replacement: "@formatjs/icu-messageformat-parser/no-parser.js",
      },
      // Current browsers have BroadcastChannel, so RxDB does not need the substitutes for it (2 kB).
      { find: "./method-chooser.js", replacement: `${import.meta.dirname}/nativeChannel.ts` },
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
