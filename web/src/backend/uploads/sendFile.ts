/** A file to the server, with progress: `fetch` cannot tell how much of a body has gone. */

import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { SILENCE_MS, unlessSilent } from "../../lib/idleTimeout.ts";
import { Refusal, type Wire } from "../../lib/http.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";

interface Sent {
  document: DocumentDoc;
  /** The same bytes were there already; the document was borrowed. */
  existing: boolean;
}

/** What a network takes no more of for so long is lost; the server, once it has all, is silent while it reads. */
const READING_MS = 300_000;

export function send(
  wire: Wire,
  file: Pick<WaitingFile, "id" | "name" | "content" | "sessionId">,
  onBytes: (done: number) => void,
  signal: AbortSignal,
): Promise<Sent> {
  const form = new FormData();
  form.append("id", file.id); // sent again after a lost answer it makes no second document
  form.append("file", file.content, file.name);
  if (file.sessionId) form.append("sessionId", file.sessionId);
  return unlessSilent(SILENCE_MS, signal, (signal, heard) => {
    const onProgress = (done: number) => {
      heard(done < file.content.size ? SILENCE_MS : READING_MS);
      onBytes(Math.min(done, file.content.size));
    };
    return post(wire, form, onProgress, signal);
  });
}

function post(
  wire: Wire,
  form: FormData,
  onProgress: (done: number) => void,
  signal: AbortSignal,
): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    const stop = () => sending.abort();
    signal.addEventListener("abort", stop);
    sending.upload.onprogress = ({ loaded }) => onProgress(loaded);
    sending.onabort = () => reject(signal.reason);
    sending.onerror = () => reject(new Error("The server went away."));
    sending.onload = () => {
      try {
        resolve(sentOf(sending.status, sending.response, sending.getResponseHeader("retry-after")));
      } catch (error) {
        reject(error as Error);
      }
    };
    sending.onloadend = () => signal.removeEventListener("abort", stop);
    sending.open("POST", `${wire.base}/v1/documents`);
    sending.responseType = "json";
    for (const [name, value] of Object.entries(wire.headers ?? {})) sending.setRequestHeader(name, value);
    sending.send(form);
  });
}

/** Throws the server's refusal; what anybody else answers, as a proxy on the way, is no answer of the server. */
function sentOf(status: number, answer: unknown, retryAfter: string | null): Sent {
  const { document, code, detail } = (answer ?? {}) as Partial<Sent> & { code?: unknown; detail?: string };
  if (status < 400 && document?.id) return answer as Sent;
  if (status < 400 || typeof code !== "string") throw new Error("Something else than the server answered.");
  throw new Refusal(status, code, detail ?? "The server failed.", Number(retryAfter) || undefined);
}
