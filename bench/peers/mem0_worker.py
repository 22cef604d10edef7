"""Run mem0 in its own process. Read lines of JSON, and print for each a line with the seconds that mem0 took.

    python mem0_worker.py FOLDER ENDPOINT MODEL

Input: {"do": "add", "texts": [...], "infer": true}, {"do": "search", "texts": [...]} or {"do": "stored"}. mem0 uses its
default store, local Qdrant. An adapter gives mem0 our model, so that both systems embed with the same weights and
threads. The models of spaCy and fastembed, which mem0 would download from hubs, are not installed. Without them, as
after a plain installation of its package, mem0 searches neither by keyword nor by entity.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["HF_HUB_OFFLINE"] = "1"
USER = "bench"
MOST = 10_000


class Adapter:
    """An adapter that gives mem0 our embedding model. mem0 calls its two methods from the main thread only."""

    def __init__(self, folder: Path) -> None:
        from vademecum.engines.onnx.embedder import Embedder

        self._runner = asyncio.Runner()
        self._embedder = Embedder(folder)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._runner.run(self._embedder.embed_statement(text)).tolist()
        return vector

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        vectors: list[list[float]] = self._runner.run(self._embedder.embed_passages(texts)).tolist()
        return vectors


def opened(folder: Path, endpoint: str, model: Path) -> Any:
    os.environ["MEM0_DIR"] = str(folder)
    from mem0 import Memory

    store = {"path": str(folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
    asked = {"model": "scripted", "api_key": "none", "openai_base_url": endpoint}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": {"provider": "openai", "config": asked},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = Adapter(model)
    return memory


def add(memory: Any, text: str, infer: bool) -> int:
    return len(memory.add([{"role": "user", "content": text}], user_id=USER, infer=infer)["results"])


def search(memory: Any, text: str) -> int:
    return len(memory.search(text, filters={"user_id": USER}, top_k=10, threshold=0.0)["results"])


def stored(memory: Any, folder: Path) -> dict[str, Any]:
    rows = memory.get_all(filters={"user_id": USER}, top_k=MOST)["results"]
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"texts": [row["memory"] for row in rows], "MB": size / 1e6}


def timed(memory: Any, order: dict[str, Any]) -> dict[str, Any]:
    seconds, found = [], []
    for text in order["texts"]:
        start = time.perf_counter()
        found.append(add(memory, text, order["infer"]) if order["do"] == "add" else search(memory, text))
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "found": found}


def main() -> None:
    folder = Path(sys.argv[1])
    # Send what libraries print to stderr, and the responses to a duplicate of the original stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    memory = opened(folder, sys.argv[2], Path(sys.argv[3]))
    for line in sys.stdin:
        order = json.loads(line)
        answer = stored(memory, folder) if order["do"] == "stored" else timed(memory, order)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
