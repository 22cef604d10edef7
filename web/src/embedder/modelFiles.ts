/**
 * Where a browser keeps a model's files: in pieces, and with a mark beside each that was found to be what the manifest
 * says. To look for them reads none of them.
 */

import type { Manifest, ModelFile } from "./workerMessages.ts";

export const CACHE = "vademecum-models";
const GRAPH = "model.onnx";
const TOKENIZER = "tokenizer.json";
const PIECE = 2 ** 20;

/** Whether all of the model is on this device, as far as a look tells: it is checked when it is opened. */
export async function isHere(manifest: Manifest, base: string): Promise<boolean> {
  if (!globalThis.caches) return false;
  const cache = await caches.open(CACHE);
  const kept = new Set((await cache.keys()).map(({ url }) => url));
  const folder = folderOf(manifest, base);
  return filesOf(manifest).every((file) => keysOf(folder + file.path, file).every((key) => kept.has(key)));
}

/** The address of a model's folder, up to the last slash. */
export function folderOf({ hash }: Manifest, base: string): string {
  return new URL(`${base}/models/${hash}/`, location.origin).href;
}

/** Those that a browser needs. */
export function filesOf(manifest: Manifest): ModelFile[] {
  return [GRAPH, TOKENIZER].map((path) => {
    const file = manifest.files.find((listed) => listed.path === path);
    if (!file) throw new Error(`The model has no ${path}.`);
    return file;
  });
}

export function pieces(file: ModelFile): { from: number; to: number }[] {
  const count = Math.ceil(file.bytes / PIECE);
  return Array.from({ length: count }, (_, n) => ({
    from: n * PIECE,
    to: Math.min((n + 1) * PIECE, file.bytes),
  }));
}

export function keyOf(url: string, from: number): string {
  return `${url}?from=${from}`;
}

/** Of what says that the file was whole. */
export function markOf(url: string): string {
  return `${url}?whole`;
}

/** All that is kept of a file. */
export function keysOf(url: string, file: ModelFile): string[] {
  return [...pieces(file).map(({ from }) => keyOf(url, from)), markOf(url)];
}
