"""Print the results of the server's embedder for tests/conformance/texts.json: `python vectors.py MODEL_FOLDER EVERY`.

The output is JSON: {case name: {"ids", "count", "vector"}}. Only each `EVERY`-th case has a vector.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from vademecum.engines.onnx.embedder import Embedder

TEXTS = Path(__file__).parents[1] / "conformance" / "texts.json"


def spelled(text: str | list[tuple[str, int]]) -> str:
    return text if isinstance(text, str) else "".join(piece * times for piece, times in text)


async def main(model: Path, every: int) -> None:
    cases: list[dict[str, Any]] = json.loads(TEXTS.read_text())
    texts = [spelled(case["text"]) for case in cases]
    embedder = Embedder(model)
    vectors = (await embedder.embed_passages(texts[every - 1 :: every])).tolist()
    prefix = embedder.manifest.prefixes.passage
    answer = {
        case["name"]: {
            "ids": embedder.token_ids(prefix + text),
            "count": embedder.count_tokens(text),
            **({"vector": vectors[n // every]} if n % every == every - 1 else {}),
        }
        for n, (case, text) in enumerate(zip(cases, texts, strict=True))
    }
    embedder.close()
    print(json.dumps(answer))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
