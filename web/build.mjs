/** Build the app (see vite.config.ts), and add the page on which users can try the API. */

import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { zipSync } from "fflate";
import { build } from "vite";

const target = "server/vademecum/web";
const swagger = "node_modules/swagger-ui-dist";
const cmaps = "node_modules/pdfjs-dist/cmaps";

// Pack the 168 character maps into one file, so that a new device needs one request instead of 168.
const tables = readdirSync(cmaps).filter((name) => name.endsWith(".bcmap"));
const packed = zipSync(
  Object.fromEntries(tables.map((name) => [name, new Uint8Array(readFileSync(`${cmaps}/${name}`))])),
  { level: 9, mtime: new Date(2000, 0, 1) }, // a fixed local time, so that the same character maps give the same bytes
);
writeFileSync("web/src/parsers/formats/cmaps.zip", packed);

await build({ configFile: "web/vite.config.ts" });

// Compress the files once here, and not for every request.
for (const name of readdirSync(`${target}/assets`)) {
  const path = `${target}/assets/${name}`;
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}

mkdirSync(`${target}/api`, { recursive: true });
for (const name of ["index.html", "start.js"]) copyFileSync(`web/api/${name}`, `${target}/api/${name}`);
for (const name of ["swagger-ui.css", "swagger-ui-bundle.js", "LICENSE"]) {
  copyFileSync(`${swagger}/${name}`, `${target}/api/${name}`);
}
