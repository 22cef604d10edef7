/** Convert text to token ids exactly as server/vademecum/engines/onnx/embedder.py does. */

import { Tokenizer } from "@huggingface/tokenizers";
import { prepareForTokenizer } from "../core/text/normalization.ts";

export class Tokens {
  readonly #tokenizer: Tokenizer;
  readonly #max: number;

  /**
   * Create a tokenizer. `tokenizer` is the parsed tokenizer.json, `max` the number of tokens that the model
   * accepts.
   */
  constructor(tokenizer: object, max: number) {
    this.#tokenizer = new Tokenizer(tokenizer, {});
    this.#max = max;
  }

  /** Return the number of tokens of a text, without prefix, [CLS], [SEP] and truncation. */
  count(text: string): number {
    return this.#tokenizer.encode(prepareForTokenizer(text), { add_special_tokens: false }).ids.length;
  }

  /** Return the input ids for the model: [CLS], the text, truncated if necessary, and [SEP]. */
  ids(text: string): number[] {
    const { ids } = this.#tokenizer.encode(prepareForTokenizer(text));
    return ids.length <= this.#max ? ids : [...ids.slice(0, this.#max - 1), ...ids.slice(-1)];
  }
}
