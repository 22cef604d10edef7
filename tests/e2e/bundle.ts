/** TypeScript for a page that serves none: a module and what it imports as one script. */

import { build } from "vite";

/** A script that puts what the module exports into a global variable of this name. */
export async function bundle(entry: string, name: string): Promise<string> {
  const made = await build({
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    build: { write: false, minify: false, lib: { entry, name, formats: ["iife"] } },
  });
  if (!Array.isArray(made)) throw new Error(`${entry} was not built.`);
  return made[0]!.output[0].code;
}
