/** What a browser needs of a model's manifest; `GET /v1/models` lists them. */

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
