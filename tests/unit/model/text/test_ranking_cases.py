"""Ranking: the shared cases (tests/conformance/ranking.json), which the browser's ranking is held to as well.

A case's `kind` says what is asked: the `terms` of a text, `bm25` of a few texts, `lift` of the scores of turns (null:
no vector), `fuse` of ranked lists, or a whole `search`, which runs on the index's own rows in memory. `.venv/bin/python tests/unit/model/text/test_ranking_cases.py` writes the
expected values anew; read the difference before you commit it.
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
from vademecum.model.text.ranking import (
    DEPTH,
    DIGITS,
    Postings,
    best,
    bm25,
    fold,
    fuse,
    hybrid,
    lift,
    query_terms,
    same_text,
    terms,
)
from vademecum.services.search.document_search import group_by_text

CASES = Path(__file__).parents[3] / "conformance" / "ranking.json"
Case = dict[str, Any]


def spelled(text: str | list[tuple[str, int]]) -> str:
    return text if isinstance(text, str) else "".join(piece * times for piece, times in text)


def answer(case: Case) -> Case:
    """What a case asks for, as this code answers it."""
    return KINDS[case["kind"]](case)


def of_terms(case: Case) -> Case:
    text = spelled(case["text"])
    return {
        "folded": fold(text),
        "same": same_text(text),
        "terms": terms(text),
        "queryTerms": query_terms(text),
    }


def of_bm25(case: Case) -> Case:
    postings = Postings.of_texts([spelled(text) for text in case["texts"]])
    everything = np.ones(len(case["texts"]), np.bool_)
    (scores,) = bm25([(postings, everything)], query_terms(case["query"]))
    return {
        "scores": np.round(scores, DIGITS).tolist(),
        "best": sorted(best(scores, case["k"], 0.0).tolist()),
    }


def of_lift(case: Case) -> Case:
    scores = np.array([-np.inf if score is None else score for score in case["scores"]])
    lifted = lift(scores, np.array(case["groups"]))
    return {"lifted": [None if score == -np.inf else score for score in lifted.tolist()]}


def of_fuse(case: Case) -> Case:
    return {"fused": [list(row) for row in fuse(case["lists"], case["weights"], case["k"])]}


def of_search(case: Case) -> Case:
    dims, k, scope = len(case["vector"]), case["k"], frozenset(case["scope"])
    table = to_table(blocks(case), dims)
    snapshot = Snapshot((Segment.from_batches(table.to_batches(), table.num_rows, dims),))
    vector = np.array(case["vector"], np.float32)
    unit = vector / np.linalg.norm(vector)

    def arms(depth: int) -> tuple[list[Hit], list[Hit]]:
        return snapshot.vector_search(unit, scope, depth), snapshot.keyword_search(
            query_terms(case["query"]), scope, depth
        )

    meaning, words = arms(max(k, DEPTH))
    place = {name(hit): hit for hit in (*meaning, *words)}
    near, fitting = ([(name(hit), hit.score) for hit in hits] for hits in (meaning, words))
    both = hybrid(fitting, near, max(k, DEPTH))
    return {
        "words": shown(((hit, hit.score) for hit in words), k),
        "meaning": shown(((hit, hit.score) for hit in meaning), k),
        "both": shown(((place[key], score) for key, score in both), k),
    }


KINDS = {"terms": of_terms, "bm25": of_bm25, "lift": of_lift, "fuse": of_fuse, "search": of_search}


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
    """Place, score and the other places of the first k passages."""
    first_k = list(group_by_text(hits))[:k]
    return [[name(first), score, *(name(hit) for hit, _ in also)] for (first, score), *also in first_k]


def cases() -> list[Case]:
    found: list[Case] = json.loads(CASES.read_text())
    return found


@pytest.mark.parametrize("case", cases() if CASES.exists() else [], ids=lambda case: case["name"])
def test_the_shared_case_is_answered_as_written(case: Case) -> None:
    for part, got in answer(case).items():
        if part in ("meaning", "both"):  # another machine adds a matrix product's numbers in another order
            assert [[key, *also] for key, _, *also in got] == [[key, *also] for key, _, *also in case[part]]
            assert [row[1] for row in got] == pytest.approx([row[1] for row in case[part]], abs=1e-5)
        else:
            assert got == (spelled(case[part]) if part in ("folded", "same") else case[part]), part


def rewrite() -> None:
    found = [case | answer(case) for case in cases()]
    text = ",\n".join(json.dumps(case, ensure_ascii=True) for case in found)
    CASES.write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    rewrite()
