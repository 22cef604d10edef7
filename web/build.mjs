/** Puts what browsers load into server/vademecum/web/, from where the server serves it and the wheel carries it. */

import { copyFileSync, mkdirSync, rmSync } from "node:fs";

const target = "server/vademecum/web";
const swagger = "node_modules/swagger-ui-dist";

rmSync(target, { recursive: true, force: true });
mkdirSync(`${target}/api`, { recursive: true });
for (const name of ["index.html", "start.js"]) copyFileSync(`web/api/${name}`, `${target}/api/${name}`);
for (const name of ["swagger-ui.css", "swagger-ui-bundle.js", "LICENSE"]) {
  copyFileSync(`${swagger}/${name}`, `${target}/api/${name}`);
}
