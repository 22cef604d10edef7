/** Text to token ids, exactly as server/vademecum/engines/onnx/embedder.py does it. */

import { Tokenizer } from "@huggingface/tokenizers";

const ASTRAL_HAN = /[\u{20000}-\u{3ffff}]/gu;

/**
 * Mends what the Python and JavaScript tokenizers spell differently; only on the way into one, never stored: this one
 * lower-cases a final capital sigma to another letter, and does not set ideographs outside the basic plane apart.
 */
export function forTokenizer(text: string): string {
  return text.replaceAll("\u03a3", "\u03c3").replace(ASTRAL_HAN, " $& ");
}

export class Tokens {
  readonly #tokenizer: Tokenizer;
  readonly #most: number;

  /** `tokenizer`: the parsed tokenizer.json. `most`: tokens that the model takes. */
  constructor(tokenizer: object, most: number) {
    this.#tokenizer = new Tokenizer(tokenizer, {});
    this.#most = most;
  }

  /** Tokens of a text alone: no prefix, no [CLS] and [SEP], not cut. */
  count(text: string): number {
    return this.#tokenizer.encode(forTokenizer(text), { add_special_tokens: false }).ids.length;
  }

  /** The ids the model is given: begins with [CLS], ends with [SEP] whatever was cut in front of it. */
  ids(text: string): number[] {
    const { ids } = this.#tokenizer.encode(forTokenizer(text));
    return ids.length <= this.#most ? ids : [...ids.slice(0, this.#most - 1), ...ids.slice(-1)];
  }
}
