/**
 * The cache entries of a model's files: pieces, and a marker for each file that matched its hash. With the
 * markers, the app can check for a model without reading its files.
 */

import type { Manifest, ModelFile } from "./workerMessages.ts";

export const CACHE = "vademecum-models";
const GRAPH = "model.onnx";
const TOKENIZER = "tokenizer.json";
const PIECE = 2 ** 20;

/** Decision of this device's user about the download of a model. */
export type DownloadChoice = "accepted" | "declined";

/** Return whether all files of the model are on this device. Their hashes are checked only when the model is opened. */
export async function isDownloaded(manifest: Manifest, base: string): Promise<boolean> {
  if (!globalThis.caches) return false;
  const cache = await caches.open(CACHE);
  const cached = new Set((await cache.keys()).map(({ url }) => url));
  const folder = folderOf(manifest, base);
  return filesOf(manifest).every((file) => keysOf(folder + file.path, file).every((key) => cached.has(key)));
}

/** Return the decision about the download of a model, or null if the user has not decided yet. */
export async function readDownloadChoice(manifest: Manifest, base: string): Promise<DownloadChoice | null> {
  if (!globalThis.caches) return "accepted"; // the download itself reports that it needs HTTPS
  const stored = await (await caches.open(CACHE)).match(choiceKey(manifest, base));
  return stored ? ((await stored.text()) as DownloadChoice) : null;
}

/** Store the decision with the model's files, so that it is evicted together with them. */
export async function storeDownloadChoice(
  manifest: Manifest,
  base: string,
  choice: DownloadChoice,
): Promise<void> {
  if (!globalThis.caches) return;
  await (await caches.open(CACHE)).put(choiceKey(manifest, base), new Response(choice));
}

function choiceKey(manifest: Manifest, base: string): string {
  return `${folderOf(manifest, base)}?choice`;
}

/** Return the size of the model's download in bytes. */
export function downloadSize(manifest: Manifest): number {
  return filesOf(manifest).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Return the address of a model's folder, with a slash at the end. */
export function folderOf({ hash }: Manifest, base: string): string {
  return new URL(`${base}/models/${hash}/`, location.origin).href;
}

/** Return the model's files that a browser needs. */
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

/** Return the key of the entry that marks a file as complete. */
export function markOf(url: string): string {
  return `${url}?whole`;
}

/** Return the keys of all entries of a file. */
export function keysOf(url: string, file: ModelFile): string[] {
  return [...pieces(file).map(({ from }) => keyOf(url, from)), markOf(url)];
}
