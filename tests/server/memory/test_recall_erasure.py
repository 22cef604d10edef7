"""Deleted memory is erased from the memory index too. Each test first checks that the scan finds the stored text."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from property.rows import dead, entity, episode, memory, project, session, summary
from server.in_process_server import Harness, Person, serve
from vademecum.model.memory.indexable_text import kind_of
from vademecum.model.records.paths import user_folder
from vademecum.services.data.erase import scan

ASKED = "Where did Bartholomew hide the xylophone of rosewood?"
TOLD = "Beneath the third oak of the orchard, said the gardener."
NOTE = "Quillfeather keeps the orchard key in a teapot"
OTHER = "Roses bloom along the southern garden wall in June."
NEW = "The teapot of the orchard is empty by now, and the key is lost."

ROWS: dict[str, dict[str, Any]] = {
    "episodes": episode("e1", "s1", userMessage=ASKED, aiResponse=TOLD),
    "memories": memory("m1", text=NOTE),
    "entities": entity("n1", "p1", name="Quillfeather", notes=NOTE),
    "summaries": summary("u1", sessionId="s1", content=f"In short: {NOTE}"),
}
KEPT: dict[str, dict[str, Any]] = {
    "episodes": episode("e2", "s1", userMessage=OTHER),
    "memories": memory("m2", text=OTHER),
    "entities": entity("n2", "p1", name="Rose", notes=OTHER),
    "summaries": summary("u2", sessionId="s2", content=OTHER),
}


async def told(h: Harness) -> Person:
    ada = await h.person()
    assert await ada.push("projects", project("p1")) == []
    assert await ada.push("sessions", session("s1"), session("s2")) == []
    for kind, row in ROWS.items():
        assert await ada.push(kind, row, KEPT[kind]) == []
    for job in ("recall", "recall_vectors"):
        await h.services.background_jobs.jobs[job].drain(ada.id)
    return ada


async def needles(h: Harness, person: Person, *keys: str) -> list[bytes]:
    """Return the bytes that the memory index stores for these rows: texts and vectors."""
    model = await h.services.inference.get()
    assert model is not None
    found = [text.encode() for text in (ASKED, TOLD, NOTE)]
    document_ids = set(keys)

    def vectors(index: Any) -> list[bytes]:
        rows = [row for batch in index._table.batches(["document_id", "vector"]) for row in batch.to_pylist()]
        return [
            np.array(row["vector"], "<f4").tobytes()[:64]
            for row in rows
            if row["document_id"] in document_ids
        ]

    made = await h.services.recall.indexes.read(person.id, vectors)
    assert len(made) == len(keys)
    return found + made


def recall_folder(data: Path, person: Person) -> Path:
    return user_folder(data, person.id) / "recall"


@pytest.mark.parametrize("search_first", [False, True])
async def test_memory_deletion_leaves_no_bytes_on_disk(tmp_path: Path, search_first: bool) -> None:
    async with serve(tmp_path, model=True, erase_delay_s=600) as h:
        ada = await told(h)
        if search_first:  # so that the index caches the rows
            await ada.call("GET", "/v1/episodes/search", params={"q": "oak", "project": "*"})
        keys = [f"{kind}/{row['id']}" for kind, row in ROWS.items()]
        needle_bytes = await needles(h, ada, *keys)
        folder = recall_folder(tmp_path, ada)
        assert scan(folder, needle_bytes) == len(needle_bytes), "control: the scan must find stored text"
        for kind, row in ROWS.items():
            assert await ada.push(kind, dead(row)) == []
        await h.services.background_jobs.jobs["erase"].drain(ada.id)
        assert scan(tmp_path, needle_bytes) == 0
        await h.drain_jobs(ada)
        assert scan(tmp_path, needle_bytes) == 0 and scan(folder, [OTHER.encode()]) == 1
        left = await h.services.recall.indexes.read(ada.id, lambda index: index.stats().documents)
        assert left == len(KEPT)


async def test_session_deletion_removes_turns_and_summaries_from_memory_index(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True, erase_delay_s=600) as h:
        ada = await told(h)
        needle_bytes = await needles(h, ada, "episodes/e1")
        assert (await ada.call("DELETE", "/v1/sessions/s1")).status_code == 200
        for kind in ("memories", "entities"):
            assert await ada.push(kind, dead(ROWS[kind])) == []
        await h.drain_jobs(ada)
        assert scan(tmp_path, needle_bytes) == 0
        hits = await h.services.recall.indexes.read(
            ada.id,
            lambda index: index.keyword_search("roses", [f"{k}/{r['id']}" for k, r in KEPT.items()], 9),
        )
        assert {kind_of(hit.document_id) for hit in hits} == {"memories", "entities", "summaries"}


@pytest.mark.parametrize("sessions", ["keep", "delete"])
async def test_project_deletion_erases_memory_and_optionally_its_turns(tmp_path: Path, sessions: str) -> None:
    async with serve(tmp_path, model=True, erase_delay_s=600) as h:
        ada = await h.person()
        assert await ada.push("projects", project("p1")) == []
        assert await ada.push("sessions", session("s1", projectId="p1"), session("s2")) == []
        overview = summary("u1", projectId="p1", content=f"In short: {NOTE}")
        inside = {**ROWS, "memories": {**ROWS["memories"], "projectId": "p1"}, "summaries": overview}
        for kind, row in inside.items():
            assert await ada.push(kind, row) == []
        assert await ada.push("memories", KEPT["memories"]) == []
        for job in ("recall", "recall_vectors"):
            await h.services.background_jobs.jobs[job].drain(ada.id)
        turn, *others = inside
        asked, answered, *needle_bytes = await needles(
            h, ada, *(f"{kind}/{inside[kind]['id']}" for kind in others)
        )
        said = [asked, answered, *(await needles(h, ada, f"{turn}/e1"))[3:]]
        assert scan(recall_folder(tmp_path, ada), needle_bytes + said) == len(needle_bytes + said)
        answer = await ada.call("DELETE", "/v1/projects/p1", params={"sessions": sessions})
        assert answer.status_code == 200
        await h.drain_jobs(ada)
        assert scan(tmp_path, needle_bytes) == 0
        assert scan(recall_folder(tmp_path, ada), said) == (len(said) if sessions == "keep" else 0)
        assert scan(tmp_path, [OTHER.encode()]) == 1, "memory in the pool must stay"


async def test_compaction_erases_old_text_of_edited_memory(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True, erase_delay_s=600, edited_text_erase_delay_s=600) as h:
        ada = await told(h)
        for kind in ("episodes", "entities", "summaries"):
            assert await ada.push(kind, dead(ROWS[kind])) == []
        await h.services.background_jobs.jobs["erase"].drain(ada.id)
        (_, _, text, vector) = await needles(h, ada, "memories/m1")
        assert scan(tmp_path, [text, vector]) == 2
        changed = {**ROWS["memories"], "text": NEW}
        assert await ada.push("memories", changed, assumed=ROWS["memories"]) == []
        assert h.services.background_jobs.jobs["erase"].is_pending(ada.id)
        await h.services.background_jobs.jobs["erase"].drain(ada.id)
        assert scan(tmp_path, [text, vector]) == 0
        assert scan(recall_folder(tmp_path, ada), [NEW.encode()]) == 1


async def test_forget_everything_erases_the_memory_index(tmp_path: Path) -> None:
    async with serve(tmp_path, model=True, erase_delay_s=600) as h:
        ada = await told(h)
        needle_bytes = await needles(h, ada, "memories/m1")
        receipt = await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        assert receipt.json()["leftovers"] == 0
        assert scan(tmp_path, needle_bytes) == 0
        await h.drain_jobs(ada)
        assert scan(tmp_path, needle_bytes) == 0


async def test_account_deletion_removes_the_memory_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for constant in ("INDEX_DELAY_S", "INDEX_MIN_INTERVAL_S"):
        monkeypatch.setattr(f"vademecum.services.runtime.background_jobs.{constant}", 0.2)
    async with serve(tmp_path, model=True) as h:
        ada = await told(h)
        needle_bytes = await needles(h, ada, "memories/m1")
        assert (await ada.call("DELETE", "/v1/me", json={"confirm": "leave for good"})).status_code == 200
        assert scan(tmp_path, needle_bytes) == 0 and not recall_folder(tmp_path, ada).exists()
        await asyncio.sleep(0.5)  # longer than the delay of the jobs that the last commits scheduled
        assert not recall_folder(tmp_path, ada).exists()


async def test_restore_rebuilds_memory_index_without_erased_rows(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path / "data", model=True, erase_delay_s=600) as h:
        ada = await told(h)
        needle_bytes = await needles(h, ada, *(f"{kind}/{row['id']}" for kind, row in ROWS.items()))
        await h.services.backup.create(tmp_path / "backup")
        assert not list((tmp_path / "backup").rglob("recall")), "a backup must not contain the derived index"
        for kind, row in ROWS.items():
            assert await ada.push(kind, dead(row)) == []
        late = memory("m9", text=f"{OTHER} And after the backup, too.")
        assert await ada.push("memories", late) == []
        await h.drain_jobs(ada)
        await h.services.restore.restore_all(tmp_path / "backup")
        found = await ada.call("GET", "/v1/entities/search", params={"q": "orchard roses", "project": "*"})
        assert [result["id"] for result in found.json()["results"]] == ["n2"]
        await h.drain_jobs(ada)
        assert scan(tmp_path / "data", needle_bytes) == 0
        count = await h.services.recall.indexes.read(ada.id, lambda index: index.stats().documents)
        assert count == len(KEPT), "the index must contain exactly the restored rows"
