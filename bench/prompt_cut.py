"""Measure the rule that leaves weak passages out of a prompt: which right passages stay, and how many tokens it saves.

    python -m bench.prompt_cut [--data DIR] [--model FOLDER] [--shares 0.1 0.25]

`bench/several_passages.json` has questions that need several passages, and questions about a whole document. DIR adds
the sets of bench/retrieval.py: XQuAD (one right passage per question), and LoCoMo with a passage per turn and with its
sessions as documents that are split into chunks. Each share of the best score is compared with the prompt of all
passages that fit the budget of JIGGA. "Kept" is the mean share of a question's right passages in that prompt that stay.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench.retrieval import ROOT, Asked, arms, interval, load_sets, scopes

from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.chat.prompt import BUDGETS, MIN_SCORE_SHARE, Passage, PromptInput, assemble, render
from vademecum.model.text.fusion import fuse_hybrid
from vademecum.model.text.normalization import normalize
from vademecum.services.chat.prompt_context import PASSAGES

OWN = Path(__file__).with_name("several_passages.json")
BUDGET = BUDGETS["JIGGA"]
WHOLE = 9  # number of passages of a document in OWN
Gold = list[set[int]]  # for each right passage of a question, the rows that contain it


class Case(NamedTuple):
    set: str
    asked: Asked
    gold: dict[str, Gold]  # by question


class Outcome(NamedTuple):
    """The result for one question. `found`: the share of the right passages in the prompt."""

    tokens: int
    found: float


def own_cases(others: Sequence[str] = ()) -> Iterator[Case]:
    """Yield the cases of OWN. `others`: passages of other documents that are searched, too."""
    data = json.loads(OWN.read_text("utf-8"))
    places = {
        f"{name}/{n}": text for name, texts in data["documents"].items() for n, text in enumerate(texts, 1)
    }
    row_of = {place: row for row, place in enumerate(places)}
    rows = [*places.values(), *others]
    among = ", among XQuAD" if others else ""
    for is_whole, name in ((False, "own, several passages"), (True, "own, a whole document")):
        questions = [q for q in data["questions"] if (len(q["passages"]) == WHOLE) == is_whole]
        gold: dict[str, Gold] = {
            q["question"]: [{row_of[place]} for place in q["passages"]] for q in questions
        }
        asked = Asked(rows, np.arange(len(rows)), None, rows, [(text, text) for text in gold], set())
        yield Case(name + among, asked, gold)


def public_cases(sets: Any) -> Iterator[Case]:
    turns = sets.retrieval("locomo")
    for name in ("xquad", "locomo", "locomo_session"):
        given = sets.retrieval(name)
        for asked in scopes(given):
            if name == "locomo_session":
                gold = {
                    q: [_rows_with(asked, turns, turn) for turn in turns.qrels[q]] for q, _ in asked.questions
                }
            else:
                rows = {
                    id: set(np.flatnonzero(asked.document == n).tolist()) for n, id in enumerate(asked.names)
                }
                gold = {q: [rows[id] for id in given.qrels[q]] for q, _ in asked.questions}
            if name == "xquad":
                yield from own_cases(asked.rows)
                yield Case("XQuAD", asked, gold)
                continue
            title = "LoCoMo, turns" if name == "locomo" else "LoCoMo, chunks of sessions"
            for label, is_one in (("one", True), ("several", False)):
                some = {q: rows for q, rows in gold.items() if (len(rows) == 1) == is_one}
                yield Case(f"{title}, {label}", asked, some)


def _rows_with(asked: Asked, turns: Any, turn: str) -> set[int]:
    """Return the chunks that contain a turn of a session, or one half of it."""
    text, session = normalize(turns.corpus[turn]), turn.rsplit(":", 1)[0]
    parts = (text[: len(text) // 2], text[len(text) // 2 :])
    rows = np.flatnonzero(asked.document == asked.names.index(session)).tolist()
    return {row for row in rows if any(part in asked.rows[row] for part in parts)}


class Prompts:
    """Assemble prompts as the server does, with a cache of token counts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._counts: dict[str, int] = {}

    async def _count(self, texts: Sequence[str]) -> list[int]:
        for text in texts:
            if text not in self._counts:
                self._counts[text] = self._embedder.count_tokens(text)
        return [self._counts[text] for text in texts]

    def outcome(self, passages: Sequence[Passage], gold: Gold, share: float) -> Outcome:
        given = PromptInput(passages=passages, min_score_share=share)
        prompt = asyncio.run(assemble(render(given, BUDGET), BUDGET, self._count))
        kept = {int(id) for id in prompt.kept.passages}
        return Outcome(prompt.tokens.rag, sum(bool(rows & kept) for rows in gold) / len(gold))


def measure(cases: Iterable[Case], embedder: Embedder, shares: Sequence[float]) -> dict[str, np.ndarray]:
    """Map each set to its outcomes, an array of questions x (no cut, *shares) x (tokens, found)."""
    prompts, outcomes = Prompts(embedder), dict[str, list[list[Outcome]]]()
    for case in cases:
        found = arms(case.asked, embedder)
        for question, gold in case.gold.items():
            hits = fuse_hybrid(*found[question], PASSAGES, embedder.chunk_weight)
            passages = [Passage(str(row), "document.txt", case.asked.rows[row], score) for row, score in hits]
            line = [prompts.outcome(passages, gold, share) for share in (0.0, *shares)]
            outcomes.setdefault(case.set, []).append(line)
    return {name: np.array(lines) for name, lines in outcomes.items()}


def row(name: str, outcomes: np.ndarray) -> str:
    tokens, found = outcomes[:, :, 0].mean(axis=0), outcomes[:, :, 1]
    has_some = found[:, 0] > 0
    cells = [f"{len(outcomes)}", f"{found[:, 0].mean():.3f}", f"{tokens[0]:,.0f}"]
    for n in range(1, found.shape[1]):
        kept = found[has_some, n] / found[has_some, 0]
        cells += ["{:.3f} ({:.3f}-{:.3f})".format(*interval(kept.tolist())), f"{tokens[n]:,.0f}"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache" / "models" / "all-minilm-l6-v2")
    parser.add_argument("--shares", type=float, nargs="+", default=[MIN_SCORE_SHARE, 0.25])
    options = parser.parse_args()
    embedder = Embedder(options.model)
    cases = [*own_cases(), *(public_cases(load_sets(options.data)) if options.data else ())]
    outcomes = measure(cases, embedder, options.shares)
    head = [embedder.manifest.id, "questions", "found", "tokens"]
    head += [cell for share in options.shares for cell in (f"{share:g}: kept", "tokens")]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name, some in outcomes.items():
        print(row(name, some), flush=True)
    embedder.close()


if __name__ == "__main__":
    main()
