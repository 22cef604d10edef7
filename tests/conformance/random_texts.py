"""Compare the results of Python and TypeScript for random texts, searches and scores. Run it by hand:

    PYTHONPATH=server .venv/bin/python tests/conformance/random_texts.py [FIRST_SEED [SEEDS [TEXTS_PER_SEED]]]

The run of the first seed includes the texts of `every_character`. If a run finds a difference, add it as a case to the
JSON files in this folder.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

from vademecum.model.documents.chunking import chunk, document_text, utf16_length
from vademecum.model.text.normalization import normalize, prepare_for_tokenizer, prepare_for_unigram

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit" / "model" / folder) for folder in ("documents", "text")]
from test_chunking import Part, rows  # noqa: E402
from test_ranking_cases import answer  # noqa: E402

ODD = "ΣσςİıßẞŁłØÆœﬁ²①Ⅷ々〇かが゛ﾞ한한ｱＡ\u0301\u0327\u0345\u05b0\u064b\u094d\u0e31\u20dd\ufe0f\u200d\u00ad\u1ab0\u1aff"
ODD += "👩🏽🇩🇪🏴\U000e0067\U000e007f𝐀𐐀𞤀葛\U000e0100\ufeff\u200b\0\x85\u2028\r\n\x1c .。!？」)_-\u2010,01'\u3000\ud800\udc00"


def character(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.35:
        return chance.choice(ODD)
    if kind < 0.5:
        return chr(chance.randrange(0x20, 0x250))
    if kind < 0.75:
        return chr(chance.randrange(0x10000))
    if kind < 0.9:
        return chr(chance.randrange(0x10000, 0x1FFFF))
    return chr(chance.randrange(0x110000))


def made(chance: random.Random, length: int) -> str:
    """Return a random text. Adjacent surrogates that form a pair become one character, as when JSON is parsed."""
    pieces = (character(chance) * chance.choice([1] * 9 + [40]) for _ in range(length))
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def every_character() -> list[str]:
    """Return texts with the characters of all used planes, 200 per text, each beside combining characters."""
    codes = [*range(0xD800), *range(0xE000, 0x20400), *range(0x2F700, 0x32400), *range(0xE0000, 0xE0200)]
    points = [chr(code) for code in codes if not 0x3400 <= code < 0xD000 or code % 16 == 0]
    return [
        " ".join(f"a{c}b か{c}\u3099{c}\u0301" for c in points[at : at + 200])
        for at in range(0, len(points), 200)
    ]


def cases(texts: list[str]) -> dict[str, list[dict[str, Any]]]:
    normalized, chunked, ranked = [], [], []
    for number, text in enumerate(texts):
        name, plain = f"random {number}", normalize(text)
        normalized.append(
            {
                "name": name,
                "text": text,
                "normalized": plain,
                "forTokenizer": prepare_for_tokenizer(plain),
                "forUnigram": prepare_for_unigram(plain),
            }
        )
        parts = [Part(text * 3), Part(text, 1, "A")]
        chunked.append(
            {
                "name": name,
                "parts": [{"text": text * 3}, {"text": text, "page": 1, "section": "A"}],
                "units": utf16_length(document_text(parts)),
                "chunks": rows(chunk(parts)),
            }
        )
        ranked.append({"name": name, "kind": "terms", "text": text})
    return {"normalization": normalized, "chunking": chunked, "ranking": ranked, "vectors": []}


def searches(chance: random.Random, texts: list[str]) -> list[dict[str, Any]]:
    """Return search cases: documents made from a few texts, so that texts repeat, and a query made from these texts."""
    found = []
    for number in range(len(texts) // 10):
        pool = [respelt(chance, text) for text in chance.sample(texts, 6) for _ in range(3)]
        documents = {
            name: some_blocks(chance, pool) for name in chance.sample(["a", "B", "c.1", "c-1", "~"], 4)
        }
        found.append(
            {
                "name": f"search at random {number}",
                "kind": "search",
                "documents": documents,
                "scope": chance.sample([*documents, "unknown"], 4),
                "query": "".join(chance.choice(pool)[:30] for _ in range(2)),
                "vector": vector(chance),
                "k": chance.choice([0, 1, 3, 10]),
            }
        )
    return found


def vector(chance: random.Random) -> list[int]:
    """Return a vector of length 1 or 2, because all cosines between such vectors are exact.

    Equal cosines then stay equal on every machine, although numpy adds in float32.
    """
    corner = [chance.choice([-1, 1]) for _ in range(4)]
    axis = chance.sample([chance.choice([-2, -1, 1, 2]), 0, 0, 0], 4)
    return chance.choice([corner, axis])


def respelt(chance: random.Random, text: str) -> str:
    """Return the text with a random change, or none, of its letter case or Unicode form, and of its spaces."""
    change = chance.choice([str, str.upper, str.lower, lambda text: unicodedata.normalize("NFD", text)])
    return change(text).replace(" ", chance.choice([" ", "  ", "\u2003", "\n"]))


def some_blocks(chance: random.Random, pool: list[str]) -> list[dict[str, Any]]:
    sizes = [chance.randrange(1, 6) for _ in range(chance.randrange(1, 4))]
    return [
        {
            "block": block,
            "chunks": [[block * 16 + at, chance.choice(pool)] for at in range(size)],
            "vectors": None if chance.random() < 0.2 else [vector(chance) for _ in range(size)],
        }
        for block, size in enumerate(sizes)
    ]


def scores(chance: random.Random, many: int) -> list[dict[str, Any]]:
    def hits() -> list[list[object]]:
        keys = chance.sample(range(60), chance.randrange(50))
        return [[str(key), score] for key, score in zip(keys, decreasing(chance, len(keys)), strict=True)]

    fused = [
        {
            "kind": "fuse",
            "lists": [hits(), hits()],
            "weights": [1, chance.choice([0, 0.4, 1])],
            "k": chance.randrange(70),
        }
        for _ in range(many)
    ]
    return [{"name": f"fuse at random {at}"} | one for at, one in enumerate(fused)]


def decreasing(chance: random.Random, many: int) -> list[float]:
    return sorted(
        (chance.choice([0.25, chance.random(), chance.random()]) for _ in range(many)), reverse=True
    )


def differs(seed: int, texts: list[str], chance: random.Random) -> bool:
    print(f"seed {seed}, {len(texts)} texts, Unicode {unicodedata.unidata_version}", flush=True)
    made_here = cases(texts)
    made_here["ranking"] += searches(chance, texts) + scores(chance, len(texts) // 10)
    made_here["ranking"] = [case | answer(case) for case in made_here["ranking"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, some in made_here.items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(some))
        command = ["npx", "--no-install", "vitest", "run", "tests/web/cases.test.ts"]
        environment = {**os.environ, "CONFORMANCE": folder}
        return subprocess.run(command, cwd=ROOT, env=environment).returncode != 0


def main(first: int = 1, seeds: int = 1, many: int = 1500) -> int:
    different = []
    for seed in range(first, first + seeds):
        chance = random.Random(seed)
        texts = [made(chance, chance.randrange(1, 200)) for _ in range(many)]
        if differs(seed, (every_character() if seed == first else []) + texts, chance):
            different.append(seed)
    print(f"seeds that differ: {different}")
    return len(different)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
