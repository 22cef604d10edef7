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
}
