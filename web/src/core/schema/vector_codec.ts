/**
 * Encode vectors as base64 of consecutive little-endian float32, as server/vademecum/model/schema/vector_codec.py does.
 */

/** Decode n × dims numbers. Throw a RangeError if the text is invalid or contains NaN or infinity. */
export function decode(text: string, dims: number): Float32Array {
  if (dims < 1) throw new RangeError("A vector has at least one dimension.");
  const bytes = fromBase64(text);
  if (bytes.length % (4 * dims)) {
    throw new RangeError(
      `The embedding has ${bytes.length} bytes, which is no multiple of ${dims} float32 numbers.`,
    );
  }
  const vectors = new Float32Array(bytes.buffer); // little-endian, because no browser runs on a big-endian processor
  if (!vectors.every(Number.isFinite)) {
    throw new RangeError("The embedding holds a number that is not finite.");
  }
  return vectors;
}

/** Decode base64. Check the length, because `atob` accepts whitespace and missing padding, which the server rejects. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  let binary: string;
  try {
    binary = atob(text);
  } catch (error) {
    throw new RangeError("The embedding is not base64.", { cause: error });
  }
  if (binary.length !== (text.length / 4) * 3 - padding) throw new RangeError("The embedding is not base64.");
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Encode vectors for a row. */
export function encode(vectors: Float32Array): string {
  const bytes = new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength);
  const PIECE = 2 ** 15; // the number of arguments that every browser accepts in one call
  let binary = "";
  for (let at = 0; at < bytes.length; at += PIECE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(binary);
}
