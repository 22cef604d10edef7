/** How the app is built: into server/vademecum/web/, from where the server serves it and the wheel carries it. */

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
      registerType: "prompt", // a new version must not take a draft away
      injectRegister: null, // the app registers it
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
        maximumFileSizeToCacheInBytes: 32 * 2 ** 20, // onnxruntime's WebAssembly: without it no question offline
        navigateFallback: "/index.html",
        navigateFallbackDenylist: [/^\/(v1|models|schema|health|ready|metrics|api)(\/|$)/u, /\.html$/u],
        cleanupOutdatedCaches: true,
        inlineWorkboxRuntime: true,
      },
    }),
  ],
  // onnxruntime's own loader stays a file by itself: its threads are workers that load it again.
  resolve: {
    alias: {
      dexie: "dexie/dist/modern/dexie.min.mjs", // its build for today's browsers: 2 kB less
      // The catalog is parsed while the app is built: 8 kB less.
      "@formatjs/icu-messageformat-parser": "@formatjs/icu-messageformat-parser/no-parser.js",
    },
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
      checks: { bundlerTimings: false }, // who installs has not asked how long each plugin takes
      // What the page begins with is one file: packed together it is smaller than in twenty.
      output: {
        codeSplitting: { groups: [{ name: "page", tags: ["$initial"], test: /^(?!.*[\\/]embedder)/u }] },
      },
    },
  },
});
