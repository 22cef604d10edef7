/** A file to the server, with progress: `fetch` cannot tell how much of a body has gone. */

import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { IDLE_TIMEOUT_MS, withIdleTimeout } from "../../lib/idleTimeout.ts";
import { ApiError, type Server } from "../../lib/http.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";

interface UploadResponse {
  document: DocumentDoc;
  /** The same bytes were there already; the document was borrowed. */
  existing: boolean;
}

/** What a network takes no more of for so long is lost; the server, once it has all, is silent while it reads. */
const SERVER_READ_TIMEOUT_MS = 300_000;

export function sendFile(
  server: Server,
  file: Pick<WaitingFile, "id" | "name" | "content" | "sessionId">,
  onBytes: (done: number) => void,
  signal: AbortSignal,
): Promise<UploadResponse> {
  const form = new FormData();
  form.append("id", file.id); // sent again after a lost answer it makes no second document
  form.append("file", file.content, file.name);
  if (file.sessionId) form.append("sessionId", file.sessionId);
  return withIdleTimeout(IDLE_TIMEOUT_MS, signal, (signal, heard) => {
    const onProgress = (done: number) => {
      heard(done < file.content.size ? IDLE_TIMEOUT_MS : SERVER_READ_TIMEOUT_MS);
      onBytes(Math.min(done, file.content.size));
    };
    return postForm(server, form, onProgress, signal);
  });
}

function postForm(
  server: Server,
  form: FormData,
  onProgress: (done: number) => void,
  signal: AbortSignal,
): Promise<UploadResponse> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    const stop = () => sending.abort();
    signal.addEventListener("abort", stop);
    sending.upload.onprogress = ({ loaded }) => onProgress(loaded);
    sending.onabort = () => reject(signal.reason);
    sending.onerror = () => reject(new Error("The server went away."));
    sending.onload = () => {
      try {
        resolve(parseResponse(sending.status, sending.response, sending.getResponseHeader("retry-after")));
      } catch (error) {
        reject(error as Error);
      }
    };
    sending.onloadend = () => signal.removeEventListener("abort", stop);
    sending.open("POST", `${server.base}/v1/documents`);
    sending.responseType = "json";
    for (const [name, value] of Object.entries(server.headers ?? {})) sending.setRequestHeader(name, value);
    sending.send(form);
  });
}

/** Throws the server's refusal; what anybody else answers, as a proxy on the way, is no answer of the server. */
function parseResponse(status: number, answer: unknown, retryAfter: string | null): UploadResponse {
  const { document, code, detail } = (answer ?? {}) as Partial<UploadResponse> & {
    code?: unknown;
    detail?: string;
  };
  if (status < 400 && document?.id) return answer as UploadResponse;
  if (status < 400 || typeof code !== "string") throw new Error("Something else than the server answered.");
  throw new ApiError(status, code, detail ?? "The server failed.", Number(retryAfter) || undefined);
}
