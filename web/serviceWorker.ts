/** Options of the service worker, which lets users install the app and open it offline. */

import { VitePWA } from "vite-plugin-pwa";

export const serviceWorker = VitePWA({
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
});
