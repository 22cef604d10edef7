"""Ranking matches the shared cases (tests/conformance/ranking.json), which the browser runs too.

The `kind` of a case: `terms` of a text, `bm25` of a few texts, `fuse` of ranked lists, `language` of a question and passages, or a `search` over rows of an index in memory. `.venv/bin/python tests/unit/model/text/test_ranking_cases.py`
rewrites the expected values; read the difference before you commit it.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vademecum.engines.lance import Block, Chunk, Hit
from vademecum.engines.lance.arrow_schema import to_table
from vademecum.engines.lance.segment import Segment, Snapshot
from vademecum.model.text.bm25 import SCORE_DIGITS, Postings, bm25_scores, top_k_with_ties
from vademecum.model.text.fusion import (
    FUSION_DEPTH,
    common_share,
    fuse,
    fuse_hybrid,
    is_foreign_script,
    language_share,
)
from vademecum.model.text.tokenize import duplicate_key, fold, tokenize, tokenize_query
from vademecum.services.search.document_search import group_by_text

CASES = Path(__file__).parents[3] / "conformance" / "ranking.json"
Case = dict[str, Any]


def spelled(text: str | list[tuple[str, int]]) -> str:
    return text if isinstance(text, str) else "".join(piece * times for piece, times in text)


def answer(case: Case) -> Case:
    """Return the actual results for a case."""
    return KINDS[case["kind"]](case)


def of_terms(case: Case) -> Case:
    text = spelled(case["text"])
    return {
        "folded": fold(text),
        "duplicateKey": duplicate_key(text),
        "terms": tokenize(text),
        "queryTerms": tokenize_query(text),
    }


def of_bm25(case: Case) -> Case:
    postings = Postings.of_texts([spelled(text) for text in case["texts"]])
    everything = np.ones(len(case["texts"]), np.bool_)
    (scores,) = bm25_scores([(postings, everything)], tokenize_query(case["query"]))
    return {
        "scores": np.round(scores, SCORE_DIGITS).tolist(),
        "best": sorted(top_k_with_ties(scores, case["k"], 0.0).tolist()),
    }


def of_fuse(case: Case) -> Case:
    return {"fused": [list(row) for row in fuse(case["lists"], case["weights"], case["k"])]}


def of_language(case: Case) -> Case:
    shares = [language_share(spelled(one["text"]), one["tokens"]) for one in case["passages"]]
    question = language_share(spelled(case["question"]["text"]), case["question"]["tokens"])
    return {"shares": shares, "common": common_share(question, shares)}


def of_search(case: Case) -> Case:
    dims, k, scope = len(case["vector"]), case["k"], frozenset(case["scope"])
    table = to_table(blocks(case), dims)
    snapshot = Snapshot((Segment.from_batches(table.to_batches(), table.num_rows, dims),))
    vector = np.array(case["vector"], np.float32)
    unit = vector / np.linalg.norm(vector)

    depth = max(k, FUSION_DEPTH)
    words = snapshot.keyword_search(tokenize_query(case["query"]), scope, depth)
    meaning = snapshot.vector_search(unit, scope, depth)
    foreign_last = not is_foreign_script(case["query"])
    nearest = snapshot.vector_search(unit, scope, depth, foreign_last=foreign_last)
    place = {name(hit): hit for hit in (*nearest, *words)}
    near, fitting = ([(name(hit), hit.score) for hit in hits] for hits in (nearest, words))
    both = fuse_hybrid(fitting, near, depth)
    return {
        "words": shown(((hit, hit.score) for hit in words), k),
        "meaning": shown(((hit, hit.score) for hit in meaning), k),
        "both": shown(((place[key], score) for key, score in both), k),
    }


KINDS = {
    "terms": of_terms,
    "bm25": of_bm25,
    "fuse": of_fuse,
    "language": of_language,
    "search": of_search,
}


def blocks(case: Case) -> list[Block]:
    return [
        Block(
            f"{document}.{block['block']}",
            document,
            block["block"],
            [Chunk(index, None, None, text) for index, text in block["chunks"]],
            None if block["vectors"] is None else np.array(block["vectors"], np.float32),
        )
        for document, some in case["documents"].items()
        for block in some
    ]


def name(hit: Hit) -> str:
    return ".".join(map(str, hit.place))


def shown(hits: Iterable[tuple[Hit, float]], k: int) -> list[list[object]]:
    """Return for each of the first k passages its place, its score, and the places of its duplicates."""
    first_k = list(group_by_text(hits))[:k]
    return [[name(first), score, *(name(hit) for hit, _ in also)] for (first, score), *also in first_k]


def cases() -> list[Case]:
    found: list[Case] = json.loads(CASES.read_text())
    return found


@pytest.mark.parametrize("case", cases() if CASES.exists() else [], ids=lambda case: case["name"])
def test_ranking_matches_shared_cases(case: Case) -> None:
    for part, got in answer(case).items():
        if part in ("meaning", "both"):  # machines round differently, because they add in different orders
            assert [[key, *also] for key, _, *also in got] == [[key, *also] for key, _, *also in case[part]]
            assert [row[1] for row in got] == pytest.approx([row[1] for row in case[part]], abs=1e-5)
        else:
            assert got == (spelled(case[part]) if part in ("folded", "duplicateKey") else case[part]), part


def rewrite() -> None:
    found = [case | answer(case) for case in cases()]
    text = ",\n".join(json.dumps(case, ensure_ascii=True) for case in found)
    CASES.write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    rewrite()
