/** Text to token ids, exactly as server/vademecum/engines/onnx/embedder.py does it. */

import { Tokenizer } from "@huggingface/tokenizers";
import { prepareForTokenizer } from "../core/text/normalization.ts";

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
    return this.#tokenizer.encode(prepareForTokenizer(text), { add_special_tokens: false }).ids.length;
  }

  /** The ids the model is given: begins with [CLS], ends with [SEP] whatever was cut in front of it. */
  ids(text: string): number[] {
    const { ids } = this.#tokenizer.encode(prepareForTokenizer(text));
    return ids.length <= this.#most ? ids : [...ids.slice(0, this.#most - 1), ...ids.slice(-1)];
  }
}
