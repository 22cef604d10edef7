/** Convert text to token ids exactly as server/vademecum/engines/onnx/embedder.py does. */

import { Tokenizer } from "@huggingface/tokenizers";
import { prepareForTokenizer, prepareForUnigram } from "../core/text/normalization.ts";

export class Tokens {
  readonly #tokenizer: Tokenizer;
  readonly #max: number;
  readonly #prepare: (text: string) => string;

  /**
   * Create a tokenizer. `tokenizer` is the parsed tokenizer.json, `max` the number of tokens that the model
   * accepts.
   */
  constructor(tokenizer: { model: { type: string } }, max: number) {
    this.#tokenizer = new Tokenizer(tokenizer, {});
    this.#max = max;
    this.#prepare = tokenizer.model.type === "Unigram" ? prepareForUnigram : prepareForTokenizer;
  }

  /** Return the number of tokens of a text, without prefix, [CLS], [SEP] and truncation. */
  count(text: string): number {
    return this.#tokenizer.encode(this.#prepare(text), { add_special_tokens: false }).ids.length;
  }

  /** Return the input ids for the model: [CLS], the text, truncated if necessary, and [SEP]. */
  ids(text: string): number[] {
    const { ids } = this.#tokenizer.encode(this.#prepare(text));
    return ids.length <= this.#max ? ids : [...ids.slice(0, this.#max - 1), ...ids.slice(-1)];
  }
}
