"""Model changes on a running server: searches keep working, no block is embedded twice, and no staged file remains."""

from __future__ import annotations

import asyncio

from server.in_process_server import check_problem, reconnect, serve
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
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.records.accounts import Account
from vademecum.model.records.paths import user_folder
from vademecum.services.data.erase import scan
from vademecum.services.models import active_model
from vademecum.services.models.model_change import Progress, Status
from vademecum.services.search.indexing import Indexes
from wait_until import soon


async def test_searches_use_old_vectors_until_model_change_completes(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        old = await used_by(ada)
        await use(h, "new")
        await gate.reached()
        assert await used_by(ada) == old, "rows must keep the old vectors until the swap"
        await check_meaning(h, ada, "old")
        me = (await ada.call("GET", "/v1/me")).json()["reembedding"]
        blocks = len(await ada.live("vectorEmbeddings"))
        assert blocks > 4 and me["of"] == blocks and 2 <= me["done"] <= 3
        gate.open.set()
        await h.drain_jobs(ada)
        assert await used_by(ada) == {(await h.services.inference.get()).model} != old
        gate.after = 10**6
        await check_meaning(h, ada, "new")
        assert (await ada.call("GET", "/v1/me")).json()["reembedding"] is None
        assert h.services.model_change.status() == Status(
            "new", None, False, Progress(0, 0), Progress(0, 0), {}
        )
        assert not (user_folder(tmp_path, ada.id) / "reembed").exists()


async def test_paused_model_change_survives_restart_and_repeats_no_block(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await soon(lambda: len(staged(tmp_path, ada)) == 3)
        await h.services.model_change.set_paused(True)
    done = gate.seen[:3]
    gate.after = 10**6
    async with opened(tmp_path, installed) as h:
        reconnect(h, ada)
        await h.drain_jobs(ada)
        assert len(gate.seen) == len(done), "the change must stay paused after a restart"
        status = h.services.model_change.status()
        assert (status.current, status.before, status.paused) == ("new", "old", True)
        await check_meaning(h, ada, "old")
        await h.services.model_change.set_paused(False)
        await h.drain_jobs(ada)
        await check_meaning(h, ada, "new")
        blocks = len(await ada.live("vectorEmbeddings"))
    made = [texts for texts in gate.seen if len(texts) > 1]  # ignore check_meaning, which embeds single texts
    assert set(done) <= set(made) and len(made) == blocks
    assert len(set(made)) == blocks, "no block is embedded twice"


async def test_document_added_during_model_change_gets_vectors_of_both_models(
    tmp_path, installed, monkeypatch
):
    gate = Gate(monkeypatch, 2)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        added = (await ada.upload("b.txt", "The chimney sweep comes on Monday.")).json()
        added = added["document"]["id"]
        await h.services.background_jobs.jobs["embed"].drain(ada.id)
        await h.services.background_jobs.jobs["index"].drain(ada.id)
        assert len(await used_by(ada)) == 1
        vector = await (await h.services.inference.for_user(ada.id)).embed_query("chimney sweep")
        found = await h.services.indexes.read(ada.id, lambda index: index.vector_search(vector, [added], 1))
        assert len(found) == 1, "the new document must be found by meaning immediately"
        gate.open.set()
        await h.drain_jobs(ada)
        assert await used_by(ada) == {(await h.services.inference.get()).model}


async def test_reverting_a_model_change_reembeds_only_swapped_accounts(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 10**6)
    async with opened(tmp_path, installed) as h:
        ada, bob = await with_document(h), await with_document(h)
        blocks = len(await ada.live("vectorEmbeddings"))
        old = await used_by(bob)
        gate.after = blocks + 2  # all blocks of the first account and two of the second
        await use(h, "new")
        await gate.reached()
        changed = [person for person in (ada, bob) if await used_by(person) != old]
        assert len(changed) == 1
        begun = asyncio.Event()
        given: list[str] = []
        passages = Embedder.embed_passages

        async def counted(embedder, texts):
            given.append(embedder.manifest.id)
            begun.set()
            return await passages(embedder, texts)

        monkeypatch.setattr(Embedder, "embed_passages", counted)
        await use(h, "old")
        for person in (ada, bob):  # accounts that were not swapped must use the old model again immediately
            serving = await h.services.inference.for_user(person.id)
            assert serving.manifest.id == ("new" if person in changed else "old")
        gate.open.set()
        for person in (ada, bob):
            await h.drain_jobs(person)
            assert await used_by(person) == old
            await check_meaning(h, person, "old")
        assert given.count("old") == blocks + 2, "the old model must embed only its blocks and the two checks"
        assert h.services.model_change.status().before is None
        assert staged(tmp_path, ada) == staged(tmp_path, bob) == []


async def test_document_deletion_erases_its_staged_vectors(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        await soon(lambda: len(staged(tmp_path, ada)) == 3)
        needles = {path.read_bytes()[:64] for path in staged(tmp_path, ada)}
        assert scan(user_folder(tmp_path, ada.id), needles) == len(needles) > 0
        document = next(iter(await ada.live("documents")))
        assert (await ada.call("DELETE", f"/v1/documents/{document}")).status_code == 200
        await h.services.background_jobs.jobs["erase"].drain(ada.id)
        assert scan(user_folder(tmp_path, ada.id), needles) == 0
        # This completes despite the closed gate, because the deletion cancels the blocked embedding.
        await h.drain_jobs(ada)
        assert h.services.model_change.status().before is None


async def test_forget_everything_deletes_staged_vectors(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        answer = await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        assert answer.status_code == 200 and answer.json()["leftovers"] == 0, answer.text
        assert staged(tmp_path, ada) == []
        gate.open.set()
        await h.drain_jobs(ada)
        assert staged(tmp_path, ada) == []


async def test_account_deletion_does_not_block_the_model_change(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 3)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        await use(h, "new")
        await gate.reached()
        assert (await ada.call("DELETE", "/v1/me", json={"confirm": "leave for good"})).status_code == 200
        assert not user_folder(tmp_path, ada.id).exists()
        gate.open.set()
        bob = await with_document(h)
        assert h.services.model_change.status().before is None
        await check_meaning(h, bob, "new")


async def test_server_restart_rebuilds_index_after_crash_following_swap(tmp_path, installed, monkeypatch):
    async def crash(*_):
        raise RuntimeError("the process ends here")

    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        with monkeypatch.context() as patched:
            patched.setattr(Indexes, "replace_index", crash)
            await use(h, "new")
            await until_used(ada, (await h.services.inference.get()).model)
    async with opened(tmp_path, installed) as h:
        reconnect(h, ada)
        await h.drain_jobs(ada)
        await check_meaning(h, ada, "new")
        assert h.services.model_change.status().before is None


async def test_pushed_vectors_of_another_model_are_recomputed(tmp_path, installed):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        held = await ada.live("vectorEmbeddings")
        await use(h, "new")
        await h.drain_jobs(ada)
        now = await ada.live("vectorEmbeddings")
        name = next(iter(held))
        stale = {**held[name], "updatedAt": "2026-02-01T00:00:00.000Z"}
        assert await ada.push("vectorEmbeddings", stale, assumed=now[name]) == []
        await h.drain_jobs(ada)
        assert await used_by(ada) == {(await h.services.inference.get()).model}


async def test_first_chosen_model_is_used_without_a_server_restart(tmp_path, installed):
    async with serve(tmp_path, model=installed) as h:
        ada = await with_document(h)
        assert (await ada.search("roof", mode="meaning"))["scope"]["mode"] == "words"
        await use(h, "old")
        await h.drain_jobs(ada)
        await check_meaning(h, ada, "old")


async def test_only_administrators_can_start_one_model_change_at_a_time(tmp_path, installed, monkeypatch):
    gate = Gate(monkeypatch, 1)
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        check_problem(await ada.call("PUT", "/v1/reembedding", json={"model": "new"}), 403, "FORBIDDEN")

        def promote(account: Account) -> Account:
            return Account(account.id, account.email, account.tier, True, None, account.created_at)

        await h.services.accounts.change_account(ada.id, promote)
        outside = f"../{installed.name}/new"  # a valid path, but outside the models folder
        for name, status in ((outside, 400), ("", 400), (".", 400), ("unknown", 409)):
            code = "BAD_REQUEST" if status == 400 else "CONFLICT"
            check_problem(await ada.call("PUT", "/v1/reembedding", json={"model": name}), status, code)
        check_problem(await ada.call("POST", "/v1/reembedding/pause"), 409, "CONFLICT")
        begun = await ada.call("PUT", "/v1/reembedding", json={"model": "new"})
        assert begun.status_code == 200 and begun.json()["before"] == "old"
        check_problem(await ada.call("PUT", "/v1/reembedding", json={"model": "third"}), 409, "CONFLICT")
        await gate.reached()
        paused = (await ada.call("POST", "/v1/reembedding/pause")).json()
        assert paused["paused"] and paused["users"] == {"done": 0, "of": 1}
        assert list(paused["behind"]) == [ada.id]
        gate.open.set()
        await h.drain_jobs(ada)
        assert (await ada.call("POST", "/v1/reembedding/resume")).json()["paused"] is False
        await h.drain_jobs(ada)
        done = (await ada.call("GET", "/v1/reembedding")).json()
        assert done["current"] == "new" and done["before"] is None
        assert active_model.read_choice(h.services.settings) == "new"
