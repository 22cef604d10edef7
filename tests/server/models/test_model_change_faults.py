"""Faults during a model change: interrupted swaps, damaged files and full disks."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from server.in_process_server import reconnect
from server.models.model_change_server import (
    Gate,
    check_meaning,
    opened,
    staged,
    until_used,
    use,
    used_by,
    with_document,
)
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download
from vademecum.engines.onnx import manifest as manifests
from vademecum.errors import Broken, Conflict
from vademecum.model.records.paths import user_folder
from vademecum.model.schema import vector_codec
from vademecum.services.models import active_model, staged_vectors
from vademecum.services.models.staged_vectors import StagedVectors
from vademecum.services.runtime import job_queue
from vademecum.services.search.indexing import Indexes
from wait_until import soon


async def crash(*_: object) -> None:
    raise RuntimeError("the process ends here")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


async def test_index_failure_after_swap_causes_no_repeated_embedding(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 10**6)
    async with opened(tmp_path, installed, search_wait_s=0) as h:
        ada = await with_document(h)
        blocks = len(await ada.live("vectorEmbeddings"))
        with monkeypatch.context() as patched:
            patched.setattr(Indexes, "replace_index", crash)
            await use(h, "new")
            new = (await h.services.inference.get()).model
            await until_used(ada, new)
            assert (await ada.search("boiler"))["scope"]["pending"] == 0, (
                "every document must have vectors of the old or the new model"
            )
            await ada.upload("b.txt", "The chimney sweep comes on Monday.")
            for job in ("embed", "index"):
                await h.services.background_jobs.jobs[job].drain(ada.id)
            used = Counter(block["model"] for block in (await ada.live("vectorEmbeddings")).values())
            assert used[new] == blocks, "the old model must not have embedded a swapped block again"
            await check_meaning(h, ada, "old")
    async with opened(tmp_path, installed) as h:
        reconnect(h, ada)
        await h.drain_jobs(ada)
        assert await used_by(ada) == {new}
        await check_meaning(h, ada, "new")
        found = (await ada.search("chimney sweep", mode="words"))["results"]
        assert found, "the document uploaded meanwhile must be indexed"
    made = Counter(texts for texts in gate.seen if len(texts) > 1)
    assert len(made) == blocks and set(made.values()) == {1}


async def test_server_restart_finishes_interrupted_swap_of_paused_model_change(
    tmp_path, installed, monkeypatch
):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        with monkeypatch.context() as patched:
            patched.setattr(Indexes, "replace_index", crash)
            await use(h, "new")
            await soon(lambda: ada.id in h.services.inference.users_being_swapped)
            await h.services.model_change.set_paused(True)
    async with opened(tmp_path, installed) as h:
        reconnect(h, ada)
        await h.drain_jobs(ada)
        await check_meaning(h, ada, "new")


async def test_reverting_a_model_change_with_interrupted_swap_recomputes_old_vectors(
    tmp_path, installed, monkeypatch
):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        old = await used_by(ada)
        with monkeypatch.context() as patched:
            patched.setattr(Indexes, "replace_index", crash)
            await use(h, "new")
            new = (await h.services.inference.get()).model
            await until_used(ada, new)
            await use(h, "old")
            assert ada.id in h.services.inference.users_on_old_model
        await h.drain_jobs(ada)
        assert await used_by(ada) == old
        await check_meaning(h, ada, "old")


async def test_vectors_of_damaged_staged_file_are_recomputed(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await soon(lambda: len(staged(tmp_path, ada)) == 3)
        path, shorter, _ = staged(tmp_path, ada)
        flip(path, path.stat().st_size // 2)
        shorter.write_bytes(shorter.read_bytes()[: 4 * 32])  # truncate the file after its first vector
        gate.open.set()
        await h.drain_jobs(ada)
        rows = await ada.live("vectorEmbeddings")
        assert Counter(texts for texts in gate.seen if len(texts) > 1).total() == len(rows) + 2
        embedder = await h.services.inference.get()
        for block_id in (path.name.partition("@")[0], shorter.name.partition("@")[0]):
            row = rows[block_id]
            made = await embedder.embed_passages([chunk["text"] for chunk in row["chunks"]])
            assert vector_codec.decode(row["embedding"], row["dims"]) == pytest.approx(made, abs=1e-6)


async def test_unwritable_staging_folder_does_not_count_as_block_failure(tmp_path, installed, monkeypatch):
    """The test replaces the folder of staged vectors by a file, so every write fails."""
    monkeypatch.setattr(job_queue, "RETRY_S", (0.05,))
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        old = await used_by(ada)
        await use(h, "new")
        await gate.reached()
        folder = next((user_folder(tmp_path, ada.id) / "reembed").iterdir())
        shutil.rmtree(folder)
        folder.write_bytes(b"")
        gate.open.set()
        await soon(lambda: len(gate.seen) > 5)
        assert await used_by(ada) == old
        assert not h.services.model_change._failures, "a write error must not count as a failure of the block"
        folder.unlink()
        folder.mkdir()
        await h.drain_jobs(ada)
        assert await used_by(ada) == {(await h.services.inference.get()).model}
        await check_meaning(h, ada, "new")


async def test_unwritable_progress_file_does_not_stop_the_model_change(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        (tmp_path / "reembed.json.new").mkdir()  # blocks the temporary file of the progress count
        gate.open.set()
        await soon(lambda: ada.id not in h.services.inference.users_on_old_model)
        await h.drain_jobs(ada)
        assert h.services.model_change.status().before is None
        await check_meaning(h, ada, "new")


async def test_model_with_wrong_checksum_is_rejected_without_changes(tmp_path, installed):
    mine = tmp_path / "models"
    shutil.copytree(installed, mine)
    flip(mine / "new" / "model.onnx", -100)
    async with opened(tmp_path / "data", mine) as h:
        ada = await with_document(h)
        with pytest.raises(Conflict, match="SHA-256"):
            await use(h, "new")
        assert active_model.read_choice(h.services.settings) == "old"
        assert active_model.load_plan(h.services.settings) is None
        assert h.services.model_change.status().current == "old"
        await check_meaning(h, ada, "old")


async def test_unloadable_model_is_rejected_without_changes(tmp_path, installed):
    """The checksum of the model file is correct, but the file contains no graph."""
    mine = tmp_path / "models"
    shutil.copytree(installed, mine)
    (mine / "new" / "model.onnx").write_bytes(b"no graph")
    manifest = manifests.load(mine / "new")
    files = tuple(manifests.describe(mine / "new" / file.path) for file in manifest.files)
    manifests.save(msgspec.structs.replace(manifest, files=files), mine / "new")
    async with opened(tmp_path / "data", mine) as h:
        ada = await with_document(h)
        with pytest.raises(Conflict, match="Nothing was changed"):
            await use(h, "new")
        assert active_model.read_choice(h.services.settings) == "old"
        assert active_model.load_plan(h.services.settings) is None
        await check_meaning(h, ada, "old")


async def test_model_change_is_rejected_if_choice_cannot_be_written(tmp_path, installed):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        (tmp_path / "model.new").mkdir()  # blocks the temporary file of the choice
        with pytest.raises(Broken, match="Nothing was changed"):
            await use(h, "new")
        assert active_model.read_choice(h.services.settings) == "old"
        assert active_model.load_plan(h.services.settings) is None
        await check_meaning(h, ada, "old")
        (tmp_path / "model.new").rmdir()
        await use(h, "new")
        await h.drain_jobs(ada)
        await check_meaning(h, ada, "new")


async def test_model_change_works_between_different_vector_lengths(tmp_path, installed, tmp_path_factory):
    mine = tmp_path / "models"
    shutil.copytree(installed, mine)
    source = tmp_path_factory.mktemp("wide")
    download.prepare_from_folder(write_source(source, "wide", 7, hidden_size=64), source, mine)
    async with opened(tmp_path / "data", mine) as h:
        ada = await with_document(h)
        for name, dims in (("wide", 64), ("old", 32)):
            await use(h, name)
            await h.drain_jobs(ada)
            assert {row["dims"] for row in (await ada.live("vectorEmbeddings")).values()} == {dims}
            await check_meaning(h, ada, name)


async def test_first_document_added_while_model_change_starts_is_included(tmp_path, installed, monkeypatch):
    begun, may_continue = threading.Event(), threading.Event()
    begin = staged_vectors.create_folders

    def slow(*arguments):
        begin(*arguments)
        begun.set()
        may_continue.wait(60)

    monkeypatch.setattr(staged_vectors, "create_folders", slow)
    async with opened(tmp_path, installed) as h:
        accounts = h.services.accounts.accounts
        change = asyncio.create_task(h.services.model_change.use("new", accounts))
        await asyncio.to_thread(begun.wait, 60)
        ada = await with_document(h)
        await check_meaning(h, ada, "old")
        may_continue.set()
        await change
        await h.drain_jobs(ada)
        assert await used_by(ada) == {(await h.services.inference.get()).model}
        await check_meaning(h, ada, "new")


async def test_account_missing_after_restore_does_not_block_the_model_change(
    tmp_path, installed, monkeypatch
):
    """A restore may remove an empty account, of which the model change is not notified."""
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        await h.services.accounts.remove_account(ada.id)
        await h.services.users.remove(ada.id)
        gate.open.set()
        await soon(lambda: h.services.model_change.status().before is None)


def test_missing_staging_folder_has_no_staged_blocks(tmp_path):
    assert StagedVectors(tmp_path, "ada", "new").seqs() == {}


async def test_reverting_a_model_change_finishes_without_retry_delay(tmp_path, installed, monkeypatch):
    monkeypatch.setattr(job_queue, "RETRY_S", (3600.0,))
    for after in (1, 2, 5) if os.environ.get("SOAK") else (1, 5):
        gate = Gate(monkeypatch, after)
        async with opened(tmp_path / str(after), installed) as h:
            ada = await with_document(h)
            await use(h, "new")
            await gate.reached()
            await use(h, "old")
            gate.open.set()
            async with asyncio.timeout(60):
                await h.drain_jobs(ada)
            await check_meaning(h, ada, "old")
        monkeypatch.undo()
        monkeypatch.setattr(job_queue, "RETRY_S", (3600.0,))


async def test_block_edited_during_embedding_is_not_staged(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await soon(lambda: len(staged(tmp_path, ada)) == 3)
        await soon(lambda: h.services.inference._running != {})
        rows = await ada.live("vectorEmbeddings")
        row = next(row for row in rows.values() if row["block"] == 3)
        chunks = [{**chunk, "text": chunk["text"].upper()} for chunk in row["chunks"]]
        edited = {
            **row,
            "chunks": chunks,
            "embedding": None,
            "updatedAt": "2026-02-01T00:00:00.000Z",
        }
        assert await ada.push("vectorEmbeddings", edited, assumed=row) == []
        await h.services.model_change.set_paused(True)
        gate.open.set()
        # Check before the erasure that the edit has scheduled, because it deletes outdated staged vectors.
        await h.services.background_jobs.jobs["reembed"].drain(ada.id)
        assert len(gate.seen) == 4, "the test needs a block that was being embedded"
        assert len(staged(tmp_path, ada)) == 3


async def test_server_restart_resumes_model_change_without_a_job_marker(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
    (tmp_path / "jobs" / "reembed" / ada.id).unlink()
    gate.open.set()
    async with opened(tmp_path, installed) as h:
        reconnect(h, ada)
        await soon(lambda: h.services.model_change.status().before is None)
        await check_meaning(h, ada, "new")
