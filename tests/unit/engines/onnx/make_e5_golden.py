"""Write `golden/e5-small-v2.json`: token ids and vectors by the published float32 export of E5-small-v2.

    .venv/bin/python tests/unit/engines/onnx/make_e5_golden.py FOLDER

FOLDER contains `e5-small-v2.onnx` and `e5-small-v2-tokenizer.json` from the Maven artifact that `pinned_models.py` names. The
export ends with one vector per token. Mean pooling and L2 normalization follow the model card of intfloat/e5-small-v2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

GOLDEN = Path(__file__).parent / "golden" / "e5-small-v2.json"
TEXTS = [
    "query: When does the lease end?",
    "query: 2024-117",
    "query: wie hoch ist die Miete in der Hafenstraße?",
    "passage: The rent of the flat in Harbour Street is 940 euros a month, due on the third working day.",
    "passage: Ada prefers tea. She stopped drinking coffee in 2021, except on flights.",
    "passage: def mean(values):\n    return sum(values) / len(values)  # raises ZeroDivisionError for []",
    "passage: 猫在垫子上睡觉。 Кошка спит на коврике.",
    "passage: " + "The committee met again and approved the minutes of the meeting before. " * 60,
]
MAX_TOKENS = 512


def main(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "e5-small-v2-tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    session = ort.InferenceSession(folder / "e5-small-v2.onnx")
    ids, vectors = [], []
    for text in TEXTS:
        encoded = tokenizer.encode(text).ids
        encoded = encoded if len(encoded) <= MAX_TOKENS else [*encoded[: MAX_TOKENS - 1], encoded[-1]]
        row = np.array([encoded], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        (tokens,) = session.run(None, feed)
        mean = tokens[0].mean(0)
        ids.append(encoded)
        vectors.append([round(float(number), 7) for number in mean / np.linalg.norm(mean)])
    golden = {"texts": TEXTS, "ids": ids, "vectors": vectors}
    GOLDEN.write_text(json.dumps(golden, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
