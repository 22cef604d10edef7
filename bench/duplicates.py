"""Count the pairs of statements that deduplication merges with each model, at its fitted threshold.

    python -m bench.duplicates [--data DIR] [FOLDER ...]

The pairs are those of tests/unit/model/memory/held_out_pairs.json, whose author had not seen the data of the fit, and with
`--data` those of STS-B (DIR contains `sets.py`). FOLDER is the folder of a model. "Alone" counts the pairs that reach the
threshold before the guards. Shares have 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from bench.retrieval import ROOT, load_sets

from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.memory.deduplication import exact_form, may_be_duplicate

MODELS = [ROOT / ".cache" / "models" / "all-minilm-l6-v2", ROOT / ".cache" / "e5" / "e5-small-v2"]
HELD_OUT = ROOT / "tests" / "unit" / "model" / "memory" / "held_out_pairs.json"
Pairs = list[tuple[str, str]]


def read_pairs(data: Path | None) -> dict[str, Pairs]:
    held_out = json.loads(HELD_OUT.read_bytes())
    sets = {
        f"held out, {label}": [(pair["old"], pair["new"]) for pair in held_out if pair["label"] == label]
        for label in ("entailment", "contradiction")
    }
    if data:
        scored = [pair for split in ("dev", "train") for pair in load_sets(data).stsb(split)]
        different = [(a, b, score) for a, b, _, score in scored if exact_form(a) != exact_form(b)]
        sets["STS-B, score 4.5 to 5"] = [(a, b) for a, b, score in different if score >= 4.5]
        sets["STS-B, score below 3.5"] = [(a, b) for a, b, score in different if score < 3.5]
    return sets


def count_reached(embedder: Embedder, pairs: Pairs) -> int:
    """Return the number of pairs whose cosine reaches the model's threshold."""
    if not pairs or embedder.same_memory is None:
        return 0
    texts = [text for pair in pairs for text in pair]
    batches = [texts[begin : begin + 200] for begin in range(0, len(texts), 200)]
    vectors = [vector for batch in batches for vector in asyncio.run(embedder.embed_passages(batch))]
    cosines = [float(a @ b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return sum(cosine >= embedder.same_memory for cosine in cosines)


def share(count: int, total: int) -> str:
    p, z = count / total, 1.96
    center, spread = p + z * z / (2 * total), z * (p * (1 - p) / total + z * z / (4 * total * total)) ** 0.5
    low, high = ((center + sign * spread) / (1 + z * z / total) for sign in (-1, 1))
    return f"{count} of {total} ({max(0, low):.3f}–{high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("models", nargs="*", type=Path, default=MODELS)
    options = parser.parse_args()
    print("| pairs | model | threshold | merged | alone |\n|---|---|---:|---:|---:|")
    embedders = [Embedder(folder) for folder in options.models]
    for name, pairs in read_pairs(options.data).items():
        guarded = [(old, new) for old, new in pairs if may_be_duplicate(new, old)]
        for embedder in embedders:
            merged, alone = (share(count_reached(embedder, some), len(pairs)) for some in (guarded, pairs))
            cells = [name, embedder.manifest.id, str(embedder.same_memory), merged, alone]
            print(f"| {' | '.join(cells)} |", flush=True)
    for embedder in embedders:
        embedder.close()


if __name__ == "__main__":
    main()
