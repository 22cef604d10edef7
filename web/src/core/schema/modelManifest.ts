/** The part of a model's manifest that a browser needs. `GET /v1/models` returns the manifests. */

export interface ModelFile {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Manifest {
  hash: string;
  dims: number;
  maxTokens: number;
  output: string;
  prefixes: { query: string; passage: string };
  files: ModelFile[];
  /** Values that were fitted for the model. Missing or null if the model was never fitted. */
  thresholds?: FittedValues | null;
}

/** Return whether the model also knows languages in other scripts than Latin. */
export const isMultilingual = ({ thresholds }: Manifest) => thresholds?.languages?.includes("zh") ?? false;

export interface FittedValues {
  /** The weight of vector search relative to keyword search, for passages of documents. */
  chunkWeight: number;
  /** The languages in which vectors find passages about as well as keywords, or better. */
  languages: string[];
}
