"""Random texts through both languages: run by hand, `PYTHONPATH=server .venv/bin/python
tests/conformance/random_texts.py [seed [how many]]`. Whatever differs becomes a case in the files beside this one.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from vademecum.model.chunk import chunk, document_text, utf16_length
from vademecum.model.normalise import for_tokenizer, normalise
from vademecum.model.ranking import fold, query_terms, terms

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))
from test_chunk import Part, rows  # noqa: E402

ODD = "ΣσςİıßẞŁłØÆœﬁ²①Ⅷ々〇かが゛ﾞ한한ｱＡ\u0301\u0327\u0345\u05b0\u064b\u094d\u0e31\u20dd\ufe0f\u200d\u00ad\u1ab0\u1aff"
ODD += "👩🏽🇩🇪🏴\U000e0067\U000e007f𝐀𐐀𞤀葛\U000e0100\ufeff\u200b\0\x85\u2028\r\n\x1c .。!？」)_-'\u3000\ud800\udc00"


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
    """A random text as JSON can carry it: what stands as two halves of a pair is a pair."""
    pieces = (character(chance) * chance.choice([1] * 9 + [40]) for _ in range(length))
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def every_character() -> list[str]:
    """The characters of all planes in use, each between some that join with much, some hundred to a text."""
    codes = [*range(0xD800), *range(0xE000, 0x20400), *range(0x2F700, 0x32400), *range(0xE0000, 0xE0200)]
    points = [chr(code) for code in codes if not 0x3400 <= code < 0xD000 or code % 16 == 0]
    return [
        " ".join(f"a{c}b か{c}\u3099{c}\u0301" for c in points[at : at + 200])
        for at in range(0, len(points), 200)
    ]


def cases(texts: list[str]) -> dict[str, list[object]]:
    normalised, chunked, ranked = [], [], []
    for number, text in enumerate(texts):
        name, plain = f"random {number}", normalise(text)
        normalised.append(
            {"name": name, "text": text, "normalised": plain, "forTokenizer": for_tokenizer(plain)}
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
        ranked.append(
            {
                "name": name,
                "kind": "terms",
                "text": text,
                "folded": fold(text),
                "terms": terms(text),
                "queryTerms": query_terms(text),
            }
        )
    return {"normalise": normalised, "chunk": chunked, "ranking": ranked}


def main(seed: int = 1, many: int = 3000) -> int:
    chance = random.Random(seed)
    texts = every_character() + [made(chance, chance.randrange(1, 200)) for _ in range(many)]
    print(f"seed {seed}, {len(texts)} texts, Unicode {unicodedata.unidata_version}")
    with tempfile.TemporaryDirectory() as folder:
        for name, some in cases(texts).items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(some))
        command = ["npx", "--no-install", "vitest", "run", "tests/web/cases.test.ts"]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, "CONFORMANCE": folder}).returncode


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
