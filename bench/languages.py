"""Measure search in other languages and across languages, with and without the rules of decisions 32 and 34.

    python -m bench.languages --xquad DIR [--model FOLDER] [LANGUAGE ...]

DIR contains `xquad.LANGUAGE.json` of github.com/google-deepmind/xquad: 240 paragraphs and 1,190 questions, translated by
people. A pair such as `es-en` asks the questions of one language about the paragraphs of the other, and `en-en+ar` asks
about the paragraphs of both, of which those of the first language are right. The table shows recall at 1: the share of
questions whose paragraph comes first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from bench.retrieval import ROOT, cut, embed, top

from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.text import fusion
from vademecum.model.text.bm25 import Postings, bm25_scores
from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import tokenize_query

LANGUAGES = ("en", "de", "es", "ar", "hi", "zh", "es-en", "zh-en", "en-en+ar+hi+zh")
Paragraphs = list[str]
Questions = list[tuple[str, int]]  # the question, and the number of its paragraph


def load(folder: Path, language: str) -> tuple[Paragraphs, Questions]:
    data = json.loads((folder / f"xquad.{language}.json").read_bytes())["data"]
    paragraphs, questions = [], []
    for paragraph in (paragraph for article in data for paragraph in article["paragraphs"]):
        questions += [(normalize(qa["question"]), len(paragraphs)) for qa in paragraph["qas"]]
        paragraphs.append(normalize(paragraph["context"]))
    return paragraphs, questions


def measure(paragraphs: Paragraphs, questions: Questions, embedder: Embedder) -> list[float]:
    """Return recall at 1: by words, by meaning, by both with a fixed weight, and by both with the language rules."""
    pieces = [cut(paragraph) for paragraph in paragraphs]
    rows = [row for some in pieces for row in some]
    paragraph_of = [number for number, some in enumerate(pieces) for _ in some]
    vectors = embed(embedder, rows, queries=False)
    matrix = np.stack([vectors[row] for row in rows])
    asked = embed(embedder, [text for text, _ in questions], queries=True)
    postings, every_row = Postings.of_texts(rows), np.ones(len(rows), np.bool_)
    is_foreign = np.array([fusion.is_foreign_script(row) for row in rows])
    row_shares = [fusion.language_share(row, embedder.count_tokens(row)) for row in rows]
    hits = np.zeros((len(questions), 4))
    for number, (text, right) in enumerate(questions):
        (word_scores,) = bm25_scores([(postings, every_row)], tokenize_query(text))
        words = top(word_scores, 0.0)
        cosines = (matrix @ asked[text]).astype(np.float64)
        meaning = top(cosines, -np.inf)
        penalty = 0.0 if fusion.is_foreign_script(text) else fusion.FOREIGN_PENALTY
        foreign_last = top(cosines - penalty * is_foreign, -np.inf)
        share = 1.0
        if words:
            sample = [row_shares[row] for row, _ in words[: fusion.LANGUAGE_SAMPLE]]
            share = fusion.common_share(fusion.language_share(text, embedder.count_tokens(text)), sample)
        ranked = [
            words,
            meaning,
            fusion.fuse_hybrid(words, meaning, 1, embedder.chunk_weight),
            fusion.fuse_hybrid(words, foreign_last, 1, embedder.chunk_weight * share),
        ]
        hits[number] = [bool(some) and paragraph_of[some[0][0]] == right for some in ranked]
    return [float(mean) for mean in hits.mean(axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--xquad", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache" / "models" / "all-minilm-l6-v2")
    parser.add_argument("languages", nargs="*", default=LANGUAGES)
    options = parser.parse_args()
    embedder = Embedder(options.model)
    print(
        f"| {embedder.manifest.id} | words | meaning | both, fixed weight | both |\n|---|---:|---:|---:|---:|"
    )
    for language in options.languages:
        of_questions, _, of_paragraphs = language.partition("-")
        _, questions = load(options.xquad, of_questions)
        names = (of_paragraphs or of_questions).split("+")
        paragraphs = [paragraph for name in names for paragraph in load(options.xquad, name)[0]]
        cells = " | ".join(f"{value:.3f}" for value in measure(paragraphs, questions, embedder))
        print(f"| {language} | {cells} |", flush=True)
    embedder.close()


if __name__ == "__main__":
    main()
