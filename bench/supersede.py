"""Count, for several thresholds, the pairs of texts of which one memory would supersede the other.

    python -m bench.supersede DATA MODEL [--list THRESHOLD]

The pairs are statements from LoCoMo's conversations, and sentences from STS-B, whose similarity people scored. DATA
contains `sets.py` with `locomo_facts()` and `stsb(split)`. MODEL is the folder of a model. `--list` prints the pairs of
LoCoMo statements that would be merged, for a person to read: wrong merges among them decide the threshold, not the
scores. An STS-B score of 5 means equivalent, 4 equivalent except for details, 3 equivalent except for something
important.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.memory.deduplication import exact_form, may_be_duplicate

THRESHOLDS = (0.80, 0.85, 0.88, 0.90, 0.91, 0.92, 0.93, 0.94, 0.96)
Scored = tuple[float, str, str, float]  # the cosine, both texts, and the score that people gave


async def vectors(folder: Path, texts: list[str]) -> dict[str, np.ndarray]:
    embedder = Embedder(folder)
    found = [await embedder.embed_passages(texts[at : at + 200]) for at in range(0, len(texts), 200)]
    await embedder.aclose()
    return dict(zip(texts, np.concatenate(found), strict=True))


def guarded(pairs: list[Scored], threshold: float) -> list[Scored]:
    return [pair for pair in pairs if pair[0] >= threshold and may_be_duplicate(pair[2], pair[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--list", type=float, default=0.0)
    asked = parser.parse_args()
    sys.path.insert(0, str(asked.data))
    import sets  # type: ignore[import-not-found]

    scopes = [list(dict.fromkeys(text for _, text, _ in facts)) for facts in sets.locomo_facts().values()]
    scored = {
        split: [p for p in sets.stsb(split) if exact_form(p[0]) != exact_form(p[1])]
        for split in ("dev", "train")
    }
    texts = {text for scope in scopes for text in scope} | {
        t for ps in scored.values() for p in ps for t in p[:2]
    }
    of = asyncio.run(vectors(asked.model, sorted(texts)))
    statements: list[Scored] = [
        (float(of[a] @ of[b]), a, b, 0.0) for scope in scopes for a, b in combinations(scope, 2)
    ]
    if asked.list:
        for cosine, a, b, _ in sorted(guarded(statements, asked.list), reverse=True):
            print(f"{cosine:.3f}  {a}\n       {b}")
        return
    print(
        "threshold | LoCoMo pairs, guarded | "
        + " | ".join(f"STS-B {s}: pairs, guarded, >=3.5, >=4" for s in scored)
    )
    for threshold in THRESHOLDS:
        line = [f"{sum(pair[0] >= threshold for pair in statements)}, {len(guarded(statements, threshold))}"]
        for some in scored.values():
            pairs = [(float(of[a] @ of[b]), a, b, score) for a, b, _, score in some]
            kept = guarded(pairs, threshold)
            shares = [sum(pair[3] >= least for pair in kept) / max(1, len(kept)) for least in (3.5, 4.0)]
            line.append(
                f"{sum(p[0] >= threshold for p in pairs)}, {len(kept)}, {shares[0]:.3f}, {shares[1]:.3f}"
            )
        print(f"{threshold:.2f} | " + " | ".join(line))


if __name__ == "__main__":
    main()
