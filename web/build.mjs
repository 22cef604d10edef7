/** Puts what browsers load into server/vademecum/web/, from where the server serves it and the wheel carries it. */

import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build, defaultClientConditions } from "vite";

const target = "server/vademecum/web";
const swagger = "node_modules/swagger-ui-dist";

await build({
  configFile: false,
  logLevel: "warn",
  root: "web",
  publicDir: false,
  // onnxruntime's own loader stays a file by itself: its threads are workers that load it again.
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  worker: { format: "es" },
  build: {
    outDir: `../${target}`,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { input: ["web/embedder.html"] },
  },
});

// Packed once, here, and not at every request.
for (const name of readdirSync(`${target}/assets`)) {
  const path = `${target}/assets/${name}`;
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}

mkdirSync(`${target}/api`, { recursive: true });
for (const name of ["index.html", "start.js"]) copyFileSync(`web/api/${name}`, `${target}/api/${name}`);
for (const name of ["swagger-ui.css", "swagger-ui-bundle.js", "LICENSE"]) {
  copyFileSync(`${swagger}/${name}`, `${target}/api/${name}`);
}
