/** Upload a file with progress. `fetch` does not report upload progress, so this uses XMLHttpRequest. */

import type { WaitingFile } from "../../storage/deviceDatabase.ts";
import { IDLE_TIMEOUT_MS, withIdleTimeout } from "../../lib/idleTimeout.ts";
import { ApiError, type Server } from "../../lib/http.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";

interface UploadResponse {
  document: DocumentDoc;
  /** Whether the server already had a document with the same bytes and borrowed it for the session. */
  existing: boolean;
}

/** Time limit for the response. The server sends nothing while it parses the uploaded file. */
const SERVER_READ_TIMEOUT_MS = 300_000;

export function sendFile(
  server: Server,
  file: Pick<WaitingFile, "id" | "name" | "content" | "sessionId">,
  onBytes: (done: number) => void,
  signal: AbortSignal,
): Promise<UploadResponse> {
  const form = new FormData();
  form.append("id", file.id); // a repeated upload with the same id creates no second document
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
    sending.onerror = () => reject(new Error("The connection to the server was lost."));
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

/**
 * Return the response, or throw the server's error. If a proxy sent the response, throw a plain Error, as if the server
 * were unreachable.
 */
function parseResponse(status: number, answer: unknown, retryAfter: string | null): UploadResponse {
  const { document, code, detail } = (answer ?? {}) as Partial<UploadResponse> & {
    code?: unknown;
    detail?: string;
  };
  if (status < 400 && document?.id) return answer as UploadResponse;
  if (status < 400 || typeof code !== "string") throw new Error("The response did not come from the server.");
  throw new ApiError(status, code, detail ?? "The server failed.", Number(retryAfter) || undefined);
}
