"""Embed the texts of a JSON list from standard input: `python embed_texts.py MODEL_FOLDER`.

Print the processor time in seconds that one thread takes, without the start, as JSON.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from vademecum.engines.onnx.embedder import Embedder


async def main(folder: Path, texts: list[str]) -> float:
    embedder = Embedder(folder, workers=1)
    await embedder.embed_passages(texts[:1])
    start = time.process_time()
    await embedder.embed_passages(texts)
    seconds = time.process_time() - start
    embedder.close()
    return seconds


if __name__ == "__main__":
    print(asyncio.run(main(Path(sys.argv[1]), json.load(sys.stdin))))
