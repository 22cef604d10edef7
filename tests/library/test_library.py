"""A library that others wrote, imported by one command and asked what a person would ask.

The real command line in processes of its own, the real model, real files: see sources.json and questions.json.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cli.command_runner import MODELS, Home
from library.fetch import NotFetched, fetch, missing, sources, unpack

SOAK = bool(os.environ.get("SOAK"))
VADEMECUM = Path(sys.executable).with_name("vademecum")
WHO = ("--user", "reader@example.org", "--session", "library")
# `asked`: answered within the first three. `hard`: as fair, but worded so far from the text that words mislead.
QUESTIONS = json.loads(Path(__file__).with_name("questions.json").read_text("utf-8"))
# Two thirds of the whole library's passages, and of the time to embed them.
LONG = (
    "Apache-2.0.txt",
    "CC-BY-SA-4.0.txt",
    "GPL-3.0-or-later.txt",
    "adoption-petition.docx",
    "dmca-summary.pdf",
    "fracture-gap-size.pdf",
    "intel-sgx-hotos17.pdf",
    "mpi4py-introduction.html",
    "pasa-paper-search.pdf",
    "zconfig-manual.pdf",
)
LIBRARY = [d["name"] for s in sources() for d in s["documents"] if SOAK or d["name"] not in LONG]
ASKED, HARD = ([q for q in QUESTIONS[kind] if q["document"] in LIBRARY] for kind in ("asked", "hard"))
FIRST = 3  # results that a person reads before asking otherwise
SEARCH_WAIT_S = "120"  # on a busy machine too, ask the whole index
DEPTH = 20  # results that a prompt may draw on


def vademecum(data: Path, *arguments: str):
    """Run the installed command as a person does; its answer as data."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("VADEMECUM_")}
    env |= {"VADEMECUM_DATA": str(data), "VADEMECUM_MODELS": str(MODELS)}
    env["VADEMECUM_SEARCH_WAIT_S"] = SEARCH_WAIT_S
    done = subprocess.run(
        [str(VADEMECUM), *arguments, "--json"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"vademecum {arguments[0]}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout)


def home_of(data: Path) -> Home:
    """For the other commands, which need not be started anew."""
    return Home(data, {"models": str(MODELS), "search_wait_s": SEARCH_WAIT_S})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    whole = fetch()
    for name in LIBRARY:
        shutil.copy(whole / name, folder)
    return folder


@pytest.fixture(scope="module")
def data(folder, tmp_path_factory):
    """A data folder whose one user has imported the library, by one command."""
    data = tmp_path_factory.mktemp("library")
    home_of(data).add("reader@example.org")
    stored = vademecum(data, "import", str(folder), *WHO)
    assert {Path(s["file"]).name for s in stored} == set(LIBRARY)
    assert not any(s.get("existing", True) for s in stored), stored
    return data


@pytest.fixture(scope="module")
def found(data):
    """What each question finds, asked of a server: without one, every command would load the model and the index."""
    questions = [q["question"] for q in (*ASKED, *HARD)]
    home = home_of(data)
    with home.serving():
        return {q: home.ok("search", q, "--limit", DEPTH, *WHO, "--json").json for q in questions}


def answers(result, question) -> bool:
    """Whether this passage is from the right document and page, or, where there are no pages, says the right thing."""
    if result["filename"] != question["document"]:
        return False
    if "page" in question:
        return result["page"] == question["page"]
    return question["phrase"] in " ".join(result["text"].split())


def place(found, question) -> int | None:
    results = found[question["question"]]["results"]
    return next((n for n, r in enumerate(results, 1) if answers(r, question)), None)


def shown(found, question) -> str:
    """The question and what was found instead, for a person who reads a failure."""
    results = found[question["question"]]["results"][:5]
    seen = [f"{r['filename']} p. {r['page']}: {' '.join(r['text'].split())[:150]}" for r in results]
    return "\n".join([question["question"], f"place {place(found, question)}", *seen])


def test_the_library_is_twenty_documents_of_four_kinds():
    kinds = [Path(name).suffix for name in LIBRARY]
    assert len(ASKED) >= 10
    assert len(set(LIBRARY)) == len(LIBRARY) >= 20
    assert kinds.count(".pdf") >= 6 and kinds.count(".docx") >= 2
    assert {".html", ".txt", ".md", ".rst"} <= set(kinds)
    assert {q["document"] for q in (*ASKED, *HARD)} <= set(LIBRARY)


def test_a_search_asks_words_and_meaning_of_the_whole_library(found):
    for got in found.values():
        assert got["scope"]["mode"] == "hybrid" and got["scope"]["complete"]
        assert len(got["scope"]["documentIds"]) == len(LIBRARY)


@pytest.mark.parametrize("question", ASKED, ids=lambda q: q["document"])
def test_the_right_page_is_among_the_first_three(found, question):
    at = place(found, question)
    assert at is not None and at <= FIRST, shown(found, question)


@pytest.mark.parametrize("question", HARD, ids=lambda q: q["document"])
def test_the_answer_to_a_hard_question_is_still_found(found, question):
    assert place(found, question) is not None, shown(found, question)


def test_four_in_ten_answers_come_first(found, capsys):
    places = [place(found, question) for question in ASKED]
    with capsys.disabled():
        print(f"\nlibrary: {places.count(1)} of {len(places)} answers come first, at {places};", end=" ")
        print(f"hard ones at {[place(found, question) for question in HARD]}")
    assert places.count(1) >= 0.4 * len(places)


def test_a_second_import_stores_nothing_twice(data, folder):
    home = home_of(data)
    before = home.ok("user", "list", "--json").json
    again = home.ok("import", folder, *WHO, "--json").json
    assert all(s["existing"] for s in again)
    assert len({s["documentId"] for s in again}) == len(again)
    after = home.ok("user", "list", "--json").json
    assert after[0]["usage"] == before[0]["usage"]
    assert after[0]["usage"]["documents"] == len(again)


def test_a_fetched_library_needs_no_network(monkeypatch):
    folder = fetch()
    cut_off(monkeypatch)
    assert missing() == []
    assert fetch() == folder


def test_without_a_network_the_fetch_says_what_to_do(tmp_path, monkeypatch):
    cut_off(monkeypatch)
    monkeypatch.setattr("library.fetch.sources", lambda: sources()[:1])
    with pytest.raises(NotFetched, match=r"could not be fetched.* Is there a network\?"):
        fetch(tmp_path)
    assert list((tmp_path / "documents").iterdir()) == []


def cut_off(monkeypatch) -> None:
    """pip finds nobody at home: no configuration, and an index where nothing listens."""
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_only_plain_files_leave_an_archive(tmp_path, kind):
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        member = tarfile.TarInfo("a/manual.pdf")
        member.type, member.linkname = kind, "/etc/passwd"
        made.addfile(member)
    wanted = {"path": "a/manual.pdf", "name": "manual.pdf", "sha256": "0" * 64}
    with pytest.raises(NotFetched):
        unpack(archive, [wanted], tmp_path)
    assert not (tmp_path / "manual.pdf").exists()


def test_a_document_that_is_not_the_one_described_is_refused(tmp_path):
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        member = tarfile.TarInfo("a/manual.txt")
        member.size = 5
        made.addfile(member, io.BytesIO(b"other"))
    wanted = {"path": "a/manual.txt", "name": "manual.txt", "sha256": "0" * 64}
    with pytest.raises(NotFetched, match=r"not what sources\.json describes"):
        unpack(archive, [wanted], tmp_path)
    assert not (tmp_path / "manual.txt").exists()
