/** The worker that runs the model: one text a run, as the server does it, so that the vectors are the same. */

import * as ort from "onnxruntime-web/wasm";
import loader from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import { dropOthers, keep, read } from "./modelDownload.ts";
import { filesOf, folderOf } from "./modelFiles.ts";
import type { Manifest, Message, Opening, Request, Verb, Verbs } from "./workerMessages.ts";
import { Tokens } from "./tokenizer.ts";

interface Model {
  manifest: Manifest;
  tokens: Tokens;
  session: ort.InferenceSession;
}

let model: Model | undefined;

type Handlers = { [V in Verb]: (given: Verbs[V]["given"]) => Promise<Verbs[V]["answer"]> };
const handlers: Handlers = {
  fetch: async (opening) => {
    await contentsOf(opening);
    return null;
  },
  open: async (opening) => {
    model = await open(opening);
    return null;
  },
  embed: (text) => embed(opened(), text),
  tokens: async (text) => opened().tokens.ids(text),
  count: async (texts) => texts.map((text) => opened().tokens.count(text)),
};

function opened(): Model {
  if (!model) throw new Error("The model is not open.");
  return model;
}

async function open(opening: Opening): Promise<Model> {
  const { manifest, threads } = opening;
  const [graph, tokenizer] = await contentsOf(opening);
  const json = JSON.parse(new TextDecoder().decode(tokenizer)) as object;
  return { manifest, tokens: new Tokens(json, manifest.maxTokens), session: await start(graph!, threads) };
}

/** What is in the files that a browser needs; what of them is not here is loaded. */
async function contentsOf({ manifest, base }: Opening): Promise<Uint8Array<ArrayBuffer>[]> {
  const files = filesOf(manifest);
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  const folder = folderOf(manifest, base);
  await keep(folder);
  let before = 0;
  const contents: Uint8Array<ArrayBuffer>[] = [];
  for (const file of files) {
    const tell = (loaded: number) => send({ kind: "progress", progress: { loaded: before + loaded, total } });
    contents.push(await read(folder + file.path, file, tell));
    before += file.bytes;
  }
  await dropOthers(folder);
  return contents;
}

/** Left to itself onnxruntime would look for its own files beside whatever the bundler made, or at a CDN. */
function start(graph: Uint8Array<ArrayBuffer>, threads: number): Promise<ort.InferenceSession> {
  ort.env.wasm.wasmPaths = {
    mjs: new URL(loader, location.href).href,
    wasm: new URL(wasm, location.href).href,
  };
  ort.env.wasm.numThreads = threads;
  return ort.InferenceSession.create(graph, { executionProviders: ["wasm"] });
}

async function embed({ manifest, tokens, session }: Model, text: string): Promise<Float32Array<ArrayBuffer>> {
  const ids = tokens.ids(text);
  const shape = [1, ids.length];
  const found = await session.run({
    input_ids: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape),
    attention_mask: new ort.Tensor("int64", new BigInt64Array(ids.length).fill(1n), shape),
  });
  return Float32Array.from(found[manifest.output]!.data as Float32Array);
}

function send(message: Message): void {
  self.postMessage(message);
}

async function handle({ id, verb, given }: Request): Promise<void> {
  try {
    const handler = handlers[verb] as (given: unknown) => Promise<Verbs[Verb]["answer"]>;
    send({ kind: "answer", id, answer: await handler(given) });
  } catch (error) {
    send({ kind: "failure", id, message: error instanceof Error ? error.message : String(error) });
  }
}

self.addEventListener("message", (event: MessageEvent<Request>) => void handle(event.data));
