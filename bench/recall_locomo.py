"""Measure the recall and the deduplication of memory on LoCoMo, through a running server.

    python bench/recall_locomo.py --data DIR [--model FOLDER] [--old] [--merged FILE]

DIR contains `sets.py`, `score.py` and `locomo/`, which are not part of this repository. Each conversation becomes a
project, its sessions become sessions, and its turns become episodes. Each question is asked in the project of its
conversation. `score.py` scores the turns found and their sessions. The same questions are also asked in all projects at
once, to show what a leak would look like.

The turns are moved in time so that each conversation ends today. This maximizes the effect of age, but the dates that
questions mention do not match. `--old` keeps the dates of the data set, at which the recency of all turns has decayed.

Then the statements of each conversation are stored one after another in its project. `locomo_verdicts.txt` contains a
person's verdicts on merged pairs, each under a digest of both texts. `--merged` writes the pairs without a verdict to a
file.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from rows import SESSION_FIELDS, sync_path
from targets.ours import Ours
from targets.wire import push_body

ROOT = Path(__file__).resolve().parent.parent
VERDICTS = Path(__file__).with_name("locomo_verdicts.txt")
MODEL = ROOT / ".cache" / "models" / "all-minilm-l6-v2"
BATCH = 100
DEEP = 100
EVERYTHING = "*"

Row = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    id: str
    session: str
    text: str
    at: datetime


@contextmanager
def server(model: Path, folder: Path, **environment: str) -> Iterator[httpx.Client]:
    """Run a server with this model and one user. Yield an HTTP client that is signed in as that user."""
    ours = Ours(ROOT)
    ours.environment = {"VADEMECUM_MODELS": str(model.resolve().parent), **environment}
    data = folder / "data"
    token = ours.add_user(data, "locomo@bench.invalid")
    ours.serve(data, folder)
    try:
        base, head = f"http://127.0.0.1:{ours.port}", {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=head, timeout=120) as client:
            assert client.get("/v1/models").json()["current"], f"{model} is not in use"
            yield client
    finally:
        ours.stop()


# -- turns ------------------------------------------------------------------------------------------------------


def turns(conversation: Mapping[str, Any], texts: Mapping[str, str], name: str) -> list[Turn]:
    """Return the turns of a conversation in order. The turns of a session are one minute apart.

    `texts` maps turn ids to the texts in the retrieval data set.
    """
    found = []
    for key, said in conversation.items():
        number = re.fullmatch(r"session_(\d+)", key)
        if number is None or not isinstance(said, list):
            continue
        begin = datetime.strptime(conversation[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for at, one in enumerate(said):
            turn_id = f"{name}/{one['dia_id']}"
            when = begin + timedelta(minutes=at)
            found.append(Turn(turn_id, f"{name}.session{number[1]}", texts[turn_id], when))
    return found


def ending_today(some: list[Turn]) -> list[Turn]:
    late = datetime.now(UTC) - max(turn.at for turn in some)
    return [Turn(turn.id, turn.session, turn.text, turn.at + late) for turn in some]


def row_id(turn_id: str) -> str:
    return turn_id.replace("/", ".").replace(":", ".")


def common(name: str, at: datetime) -> Row:
    time_of = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"id": name, "createdAt": time_of, "updatedAt": time_of, "_deleted": False}


def push(client: httpx.Client, collection: str, rows: list[Row]) -> None:
    for begin in range(0, len(rows), BATCH):
        body = push_body(rows[begin : begin + BATCH])
        answer = client.post(f"{sync_path(collection)}/push", content=body).raise_for_status()
        assert answer.json() == [], f"refused: {answer.text[:500]}"


def load(client: httpx.Client, name: str, some: list[Turn]) -> None:
    """Push the project, the sessions and the turns of a conversation, as a device would."""
    begin = min(turn.at for turn in some)
    push(client, "projects", [{**common(name, begin), "name": name, "documentIds": []}])
    sessions = dict.fromkeys(turn.session for turn in some)
    heads = {"title": "", "mode": "analysis", **SESSION_FIELDS, "projectId": name}
    push(client, "sessions", [{**common(session, begin), **heads} for session in sessions])
    said = {"aiResponse": "", "citations": [], "status": "done"}
    rows = [
        {**common(row_id(one.id), one.at), "sessionId": one.session, "userMessage": one.text, **said}
        for one in some
    ]
    push(client, "episodes", rows)


def search(client: httpx.Client, query: str, k: int, project: str) -> Any:
    asked: dict[str, str | int] = {"q": query, "project": project, "limit": k}
    return client.get("/v1/episodes/search", params=asked).raise_for_status().json()


def wait_for_vectors(client: httpx.Client) -> float:
    begin = time.monotonic()
    while not search(client, "anything", 1, EVERYTHING)["complete"]:
        time.sleep(0.5)
    return time.monotonic() - begin


# -- statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merged:
    project: str
    new: str
    old: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.old}\0{self.new}".encode()).hexdigest()[:16]


def remember(client: httpx.Client, statements: Mapping[str, list[str]]) -> tuple[list[Merged], int]:
    """Store the statements. Return two values: the pairs that were merged, and the number of identical statements."""
    merged, exact = [], 0
    for project, texts in statements.items():
        texts_of: dict[str, str] = {}
        for text in texts:
            answer = client.post("/v1/memories", json={"text": text, "project": project})
            kept = answer.raise_for_status().json()
            assert kept["scope"] == {"kind": "project", "projectId": project}, kept["scope"]
            if kept["supersedes"]:
                merged.append(Merged(project, text, texts_of[kept["supersedes"]]))
            elif kept["deduplicated"]:
                exact += 1
            texts_of[kept["memory"]["id"]] = kept["memory"]["text"]
    return merged, exact


NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
NEGATION = re.compile(r"\b(?:not?|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.I)


def contradicts(pair: Merged) -> bool:
    """Return whether the numbers or the negations in two texts differ. This check does not use the server's rules."""
    return any(
        sorted(pattern.findall(pair.new)) != sorted(pattern.findall(pair.old))
        for pattern in (NUMBER, NEGATION)
    )


def verdicts() -> dict[str, bool]:
    lines = VERDICTS.read_text().split("\n") if VERDICTS.exists() else []
    words = (line.split() for line in lines if line and not line.startswith("#"))
    return {digest: verdict == "same" for digest, verdict in words}


def judged(merged: list[Merged], exact: int) -> str:
    known = verdicts()
    right = [known[pair.digest] for pair in merged if pair.digest in known]
    share = f"{sum(right) / len(right):.3f} ({sum(right)} of {len(right)})" if right else "–"
    contradicting = sum(map(contradicts, merged))
    return (
        f"| LoCoMo statements: merged {len(merged)}, the same to the letter {exact} | precision {share}, "
        f"not yet read {len(merged) - len(right)} | a number or negation differs: {contradicting} |"
    )


# -- the run ----------------------------------------------------------------------------------------------------


def figures(client: httpx.Client, score: Callable[..., Any], given: Any, sessions: Any) -> Iterator[str]:
    def ids(found: Any, k: int) -> list[str]:
        names = {row_id(turn): turn for turn in given.corpus}
        return [names[one["id"]] for one in found[:k]]

    def asked(query: str, k: int, scope: str) -> list[str]:
        answer = search(client, query, k, scope)
        assert answer["scope"] == {"kind": "project", "projectId": scope}, answer["scope"]
        return ids(answer["results"], k)

    def ageless(query: str, k: int, scope: str) -> list[str]:
        results = search(client, query, DEEP, scope)["results"]
        return ids(sorted(results, key=lambda one: -one["relevance"]), k)

    def everywhere(query: str, k: int, scope: str) -> list[str]:
        return ids(search(client, query, k, EVERYTHING)["results"], k)

    def of_sessions(query: str, k: int, scope: str) -> list[str]:
        """Return the k best sessions. The rank of a session is that of its best turn."""
        return list(dict.fromkeys(turn.rpartition(":")[0] for turn in ageless(query, DEEP, scope)))[:k]

    heads = ("recall@1", "recall@5", "recall@10", "recall@20", "ndcg@10")
    yield f"| LoCoMo turns | {' | '.join(heads)} | leaks | p50 ms | p95 ms |\n|---|{'---:|' * (len(heads) + 3)}"
    ways = {
        "in its project": (asked, given),
        "by relevance alone": (ageless, given),
        "in all projects at once": (everywhere, given),
        "sessions, by relevance alone": (of_sessions, sessions),
    }
    for way, (how, wanted) in ways.items():
        found = score(wanted, how)
        cells = ["{:.3f} ({:.3f}–{:.3f})".format(*found["metrics"][head]) for head in heads]
        yield f"| {way} | {' | '.join(cells)} | {found['leaks']} | {found['p50_ms']} | {found['p95_ms']} |"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=MODEL, help="a model's folder")
    parser.add_argument("--old", action="store_true", help="leave the turns in their years")
    parser.add_argument("--only", choices=("turns", "statements"), help="one of the two")
    parser.add_argument("--merged", type=Path, help="where merged pairs that nobody has judged are written")
    return parser.parse_args()


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run_turns(client: httpx.Client, chosen: argparse.Namespace, sets: Any, score: Callable[..., Any]) -> None:
    given = sets.retrieval("locomo")
    for sample in json.loads((chosen.data / "locomo" / "locomo10.json").read_text()):
        name = sample["sample_id"]
        said = turns(sample["conversation"], given.corpus, name)
        load(client, name, said if chosen.old else ending_today(said))
    note(f"{len(given.corpus)} turns are loaded")
    note(f"and have their vectors {wait_for_vectors(client):.0f} s later")
    for line in figures(client, score, given, sets.retrieval("locomo_session")):
        print(line, flush=True)


def run_statements(client: httpx.Client, chosen: argparse.Namespace, sets: Any) -> None:
    statements = {name: [text for _, text, _ in some] for name, some in sets.locomo_facts().items()}
    known = {row["id"] for row in client.get("/v1/sync/projects/1/pull?limit=1000").json()["documents"]}
    now = datetime.now(UTC)
    push(
        client, "projects", [{**common(name, now), "name": name} for name in statements if name not in known]
    )
    begin = time.monotonic()
    merged, exact = remember(client, statements)
    count = sum(map(len, statements.values()))
    note(f"{count} statements, {(time.monotonic() - begin) / count * 1000:.1f} ms each")
    print(judged(merged, exact), flush=True)
    if chosen.merged:
        unread = [pair for pair in merged if pair.digest not in verdicts()]
        chosen.merged.write_text("".join(f"{p.digest}\n  {p.old}\n  {p.new}\n" for p in unread))


def main() -> None:
    chosen = arguments()
    sys.path.insert(0, str(chosen.data))
    sets, score = importlib.import_module("sets"), importlib.import_module("score").score
    with tempfile.TemporaryDirectory() as folder, server(chosen.model, Path(folder)) as client:
        if chosen.only != "statements":
            run_turns(client, chosen, sets, score)
        if chosen.only != "turns":
            run_statements(client, chosen, sets)


if __name__ == "__main__":
    main()
