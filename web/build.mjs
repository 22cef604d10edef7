/** Builds the app (see vite.config.ts), and puts the page that tries the API beside it. */

import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { zipSync } from "fflate";
import { build } from "vite";

const target = "server/vademecum/web";
const swagger = "node_modules/swagger-ui-dist";
const cmaps = "node_modules/pdfjs-dist/cmaps";

// One file in place of 168, which each new device would ask for one by one.
const tables = readdirSync(cmaps).filter((name) => name.endsWith(".bcmap"));
const packed = zipSync(
  Object.fromEntries(tables.map((name) => [name, new Uint8Array(readFileSync(`${cmaps}/${name}`))])),
  { level: 9, mtime: new Date(2000, 0, 1) }, // so that the same tables are the same bytes: a ZIP has local times
);
writeFileSync("web/src/parsers/formats/cmaps.zip", packed);

await build({ configFile: "web/vite.config.ts" });

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
