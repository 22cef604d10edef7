"""Run sentence-transformers in its own process.

Read JSON lines from standard input. For each, print the vectors and the encoding time in seconds.

Input: {"texts": [...], "batch": 32}. The first line of output contains the versions of the libraries. It is printed
once the model is loaded.
"""

from __future__ import annotations

import json
import sys
import time

import sentence_transformers
import torch


def main() -> None:
    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    model = sentence_transformers.SentenceTransformer(folder, device="cpu", local_files_only=True)
    model.max_seq_length = 512
    versions = {"sentence-transformers": sentence_transformers.__version__, "torch": torch.__version__}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        start = time.perf_counter()
        vectors = model.encode(asked["texts"], batch_size=asked["batch"], normalize_embeddings=True)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "vectors": vectors.tolist()}), flush=True)


if __name__ == "__main__":
    main()
