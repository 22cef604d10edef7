"""Measure document search on XQuAD through a running server, with one chunk per paragraph, for several models.

    python bench/recall_xquad.py --data DIR [--language LANGUAGE] [FOLDER ...]

DIR contains `score.py` and `xquad/xquad.LANGUAGE.json` of github.com/google-deepmind/xquad, which are not part of this
repository: 240 paragraphs in 48 articles, and 1,190 questions. A device pushes each article as a document and each
paragraph as a chunk, and the server embeds them. All models answer the same questions in one run. The last row of the
table compares the last model with the first one, question by question.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from recall_locomo import MODEL, ROOT, Row, common, note, push, server
from retrieval import interval
from rows import DOCUMENT_FIELDS, SESSION_FIELDS

E5 = ROOT / ".cache" / "e5" / "e5-small-v2"
SESSION = "xquad"
HEADS = ("recall@1", "recall@5", "ndcg@10")
LIMIT = 10  # the largest number of results that `score.py` asks for with these figures


def paragraph_id(document: int, index: int) -> str:
    return f"article{document}#{index}"


def load_questions(file: Path) -> tuple[list[list[str]], Any]:
    """Return the paragraphs of each article, and the questions in the form that `score.py` expects."""
    articles = [article["paragraphs"] for article in json.loads(file.read_bytes())["data"]]
    given = SimpleNamespace(name="xquad", queries={}, qrels={}, scopes={}, doc_scope={})
    for number, paragraphs in enumerate(articles):
        for index, paragraph in enumerate(paragraphs):
            for asked in paragraph["qas"]:
                given.queries[asked["id"]] = asked["question"]
                given.qrels[asked["id"]] = {paragraph_id(number, index): 1}
    return [[paragraph["context"] for paragraph in paragraphs] for paragraphs in articles], given


def rows_of(articles: list[list[str]], user_id: str) -> Iterator[tuple[Row, Row]]:
    """Yield the document and the block of each article, as a device pushes them."""
    now = datetime.now(UTC)
    for number, paragraphs in enumerate(articles):
        shared = common(f"article{number}", now)
        document = {
            **shared,
            **{"userId": user_id, "originSessionId": SESSION, "activeSessions": [SESSION], "accessCount": 0},
            **{"lastAccessedAt": shared["createdAt"], "filename": f"{number}.txt", "mimeType": "text/plain"},
            **{
                "size": 1,
                "contentHash": f"{number:064x}",
                "chunkCount": len(paragraphs),
                "status": "pending",
            },
            **DOCUMENT_FIELDS,
        }
        chunks, start = [], 0
        for index, text in enumerate(paragraphs):
            chunks.append({"index": index, "start": start, "text": text, "tokens": len(text) // 4})
            start += len(text) + 2
        block = {
            **common(f"article{number}.0", now),
            "documentId": f"article{number}",
            "block": 0,
            "textHash": "",
        }
        yield document, {**block, "model": "", "dims": 0, "chunks": chunks, "embedding": None}


def measure(model: Path, articles: list[list[str]], given: Any, score: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, server(model, Path(folder)) as client:
        user_id = client.get("/v1/me").raise_for_status().json()["userId"]
        session = {**common(SESSION, datetime.now(UTC)), "title": "", "mode": "analysis", **SESSION_FIELDS}
        push(client, "sessions", [session])
        documents, blocks = zip(*rows_of(articles, user_id), strict=True)
        push(client, "documents", list(documents))
        push(client, "vectorEmbeddings", list(blocks))

        def search(query: str, k: int) -> Any:
            body = {"query": query, "sessionId": SESSION, "k": k}
            return client.post("/v1/search", json=body).raise_for_status().json()

        while not (scope := search("anything", 1)["scope"])["complete"] or scope["pending"]:
            time.sleep(0.5)
        assert scope["mode"] == "hybrid", scope
        note(f"{model.name}: {sum(map(len, articles))} paragraphs have their vectors")

        def ids(query: str, k: int) -> list[str]:
            found = search(query, min(k, LIMIT))["results"]
            return [
                paragraph_id(int(one["documentId"].removeprefix("article")), one["chunkIndex"])
                for one in found
            ]

        return dict(score(given, ids, ks=(1, 5)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--language", default="en")
    parser.add_argument("models", nargs="*", type=Path, default=[MODEL, E5])
    options = parser.parse_args()
    sys.path.insert(0, str(options.data))
    score = importlib.import_module("score").score
    articles, given = load_questions(options.data / "xquad" / f"xquad.{options.language}.json")
    print(f"| XQuAD {options.language}, through the API | {' | '.join(HEADS)} | p50 ms |")
    print("|---|" + "---:|" * (len(HEADS) + 1))
    results = [measure(model, articles, given, score) for model in options.models]
    for model, found in zip(options.models, results, strict=True):
        cells = ["{:.3f} ({:.3f}–{:.3f})".format(*found["metrics"][head]) for head in HEADS]
        print(f"| {model.name} | {' | '.join(cells)} | {found['p50_ms']} |")
    first, last = results[0]["rows"], results[-1]["rows"]
    differences = [
        "{:+.3f} ({:+.3f} to {:+.3f})".format(
            *interval([last[q][head] - first[q][head] for q in given.queries])
        )
        for head in HEADS
    ]
    print(f"| last − first | {' | '.join(differences)} | |")


if __name__ == "__main__":
    main()
