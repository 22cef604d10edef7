/** Messages between the page and the embedder's worker. */

import type { Manifest } from "../core/schema/modelManifest.ts";

export type { Manifest, ModelFile } from "../core/schema/modelManifest.ts";

export interface OpenOptions {
  manifest: Manifest;
  /** Origin of the server. Empty in the app, which the server itself serves. */
  base: string;
  /** Number of threads. 0 lets onnxruntime choose. */
  threads: number;
}

/** The worker's methods with their input and output. */
export interface Methods {
  fetch: { input: OpenOptions; output: null };
  open: { input: OpenOptions; output: null };
  embed: { input: string; output: Float32Array<ArrayBuffer> };
  tokens: { input: string; output: number[] };
  count: { input: string[]; output: number[] };
}

export type Method = keyof Methods;
export type Request = { [M in Method]: { id: number; method: M; input: Methods[M]["input"] } }[Method];

export interface Progress {
  /** Number of the model's bytes on this device. `total` is the size of the whole model. */
  loaded: number;
  total: number;
}

export type Message =
  | { kind: "output"; id: number; output: Methods[Method]["output"] }
  | { kind: "failure"; id: number; message: string }
  | { kind: "progress"; progress: Progress };
