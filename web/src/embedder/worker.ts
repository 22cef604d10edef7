/**
 * The worker that runs the model. It embeds one text at a time, as the server does, so that both compute the same
 * vectors.
 */

import * as ort from "onnxruntime-web/wasm";
import loader from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import { evictOtherModels, loadFile, protectModel } from "./modelDownload.ts";
import { downloadSize, filesOf, folderOf } from "./modelFiles.ts";
import type { Manifest, Message, Method, Methods, OpenOptions, Request } from "./workerMessages.ts";
import { Tokens } from "./tokenizer.ts";

interface Model {
  manifest: Manifest;
  tokens: Tokens;
  session: ort.InferenceSession;
}

let model: Model | undefined;

type Handlers = { [M in Method]: (input: Methods[M]["input"]) => Promise<Methods[M]["output"]> };
const handlers: Handlers = {
  fetch: async (options) => {
    await loadFiles(options);
    return null;
  },
  open: async (options) => {
    model = await open(options);
    return null;
  },
  embed: (text) => embed(openModel(), text),
  tokens: async (text) => openModel().tokens.ids(text),
  count: async (texts) => texts.map((text) => openModel().tokens.count(text)),
};

function openModel(): Model {
  if (!model) throw new Error("The model is not open.");
  return model;
}

async function open(options: OpenOptions): Promise<Model> {
  const { manifest, threads } = options;
  const [graph, tokenizer] = await loadFiles(options);
  const json = JSON.parse(new TextDecoder().decode(tokenizer)) as { model: { type: string } };
  return { manifest, tokens: new Tokens(json, manifest.maxTokens), session: await start(graph!, threads) };
}

/** Return the contents of the files that a browser needs, downloading missing files. */
async function loadFiles({ manifest, base }: OpenOptions): Promise<Uint8Array<ArrayBuffer>[]> {
  const total = downloadSize(manifest);
  const folder = folderOf(manifest, base);
  await protectModel(folder);
  let completed = 0;
  const contents: Uint8Array<ArrayBuffer>[] = [];
  for (const file of filesOf(manifest)) {
    const onBytes = (loaded: number) =>
      send({ kind: "progress", progress: { loaded: completed + loaded, total } });
    contents.push(await loadFile(folder + file.path, file, onBytes));
    completed += file.bytes;
  }
  await evictOtherModels(folder);
  return contents;
}

/**
 * Start onnxruntime with the files that this app includes. By default it would look for them beside the bundle or at a
 * CDN.
 */
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
  const outputs = await session.run({
    input_ids: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape),
    attention_mask: new ort.Tensor("int64", new BigInt64Array(ids.length).fill(1n), shape),
  });
  return Float32Array.from(outputs[manifest.output]!.data as Float32Array);
}

function send(message: Message): void {
  self.postMessage(message);
}

async function handle({ id, method, input }: Request): Promise<void> {
  try {
    const handler = handlers[method] as (input: unknown) => Promise<Methods[Method]["output"]>;
    send({ kind: "output", id, output: await handler(input) });
  } catch (error) {
    send({ kind: "failure", id, message: error instanceof Error ? error.message : String(error) });
  }
}

self.addEventListener("message", (event: MessageEvent<Request>) => void handle(event.data));
