/** What the page and the embedder's worker say to each other. */

import type { Manifest } from "../core/schema/modelManifest.ts";

export type { Manifest, ModelFile } from "../core/schema/modelManifest.ts";

export interface Opening {
  manifest: Manifest;
  /** Origin of the server; empty in the app, which the server itself serves. */
  base: string;
  /** 0: as many as onnxruntime finds good for this machine. */
  threads: number;
}

/** The worker's verbs: what each is given and what it answers. */
export interface Verbs {
  fetch: { given: Opening; answer: null };
  open: { given: Opening; answer: null };
  embed: { given: string; answer: Float32Array<ArrayBuffer> };
  tokens: { given: string; answer: number[] };
  count: { given: string[]; answer: number[] };
}

export type Verb = keyof Verbs;
export type Request = { [V in Verb]: { id: number; verb: V; given: Verbs[V]["given"] } }[Verb];

export interface Progress {
  /** Bytes of the model that are on this device, and that there are. */
  loaded: number;
  total: number;
}

export type Message =
  | { kind: "answer"; id: number; answer: Verbs[Verb]["answer"] }
  | { kind: "failure"; id: number; message: string }
  | { kind: "progress"; progress: Progress };
