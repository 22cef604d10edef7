/** Bundle TypeScript for a page without a server. */

import { build } from "vite";

/** Return a script that assigns the exports of a module to a global variable. */
export async function bundle(entry: string, name: string): Promise<string> {
  const output = await build({
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    build: { write: false, minify: false, lib: { entry, name, formats: ["iife"] } },
  });
  if (!Array.isArray(output)) throw new Error(`${entry} was not built.`);
  return output[0]!.output[0].code;
}
