"""Quotas are enforced inside the transaction, even for concurrent pushes."""

import asyncio
import base64
import os

import pytest

from property.rows import block, dead, document, episode, fact, session
from property.sync_wire import alone, codes, page, send
from server.in_process_server import reconnect, run, serve
from vademecum.model.sync.quotas import Limits
from vademecum.settings import default_tiers

ROUNDS = 100 if os.environ.get("SOAK") else 10


def small(**limits):
    """Return settings that give every tier these limits."""
    return {"tiers": {tier: Limits(**limits) for tier in default_tiers()}}


async def fill(ada, count=100):
    rows = [document(ada.id, f"d{i}") for i in range(count)]
    assert await send(ada, "documents", *((row, None) for row in rows)) == []
    return rows


async def alive(ada):
    return [row for row in (await page(ada, "documents"))["documents"] if not row["_deleted"]]


def test_only_one_of_concurrent_pushes_at_99_documents_is_accepted(tmp_path):
    async def scenario(ada):
        await fill(ada, 99)
        for number in range(ROUNDS):
            rows = [document(ada.id, f"r{number}-{i}") for i in range(50)]
            answers = await asyncio.gather(*(send(ada, "documents", (row, None)) for row in rows))
            refused = [row for answer in answers for row in answer]
            assert codes(refused) == ["DOCUMENT_LIMIT"] * 49
            living = await alive(ada)
            assert len(living) == 100
            [winner] = [row for row in living if row["id"].startswith(f"r{number}-")]
            assert {winner["id"]} | {row["id"] for row in refused} == {row["id"] for row in rows}
            assert await send(ada, "documents", (dead(winner), winner)) == []

    alone(tmp_path, scenario)


def test_revival_at_100_documents_is_rejected(tmp_path):
    async def scenario(ada):
        rows = await fill(ada, 100)
        await send(ada, "documents", (dead(rows[0]), rows[0]))
        tombstone = next(row for row in (await page(ada, "documents"))["documents"] if row["_deleted"])
        assert await send(ada, "documents", (document(ada.id, "another"), None)) == []
        assert codes(await send(ada, "documents", (rows[0], tombstone))) == ["DOCUMENT_LIMIT"]
        assert len(await alive(ada)) == 100 and rows[0]["id"] not in {r["id"] for r in await alive(ada)}
        await send(ada, "documents", (dead(rows[1]), rows[1]))
        assert await send(ada, "documents", (rows[0], tombstone)) == []
        assert len(await alive(ada)) == 100

    alone(tmp_path, scenario)


def test_account_at_document_limit_accepts_edits_deletes_and_replacements(tmp_path):
    async def scenario(ada):
        rows = await fill(ada, 100)
        assert await send(ada, "documents", ({**rows[1], "filename": "renamed.txt"}, rows[1])) == []
        swap = [(document(ada.id, "new"), None), (dead(rows[0]), rows[0])]
        assert await send(ada, "documents", *swap) == []
        assert len(await alive(ada)) == 100

    alone(tmp_path, scenario)


def test_batch_is_accepted_in_order_up_to_the_document_limit(tmp_path):
    async def scenario(ada):
        await fill(ada, 97)
        batch = [(document(ada.id, f"n{i}"), None) for i in range(5)]
        assert [row["id"] for row in await send(ada, "documents", *batch)] == ["n3", "n4"]

    alone(tmp_path, scenario)


def test_pushed_rows_are_charged_and_deletes_free_storage(tmp_path):
    async def scenario(ada):
        first, second = (fact(i, value="x" * 60_000) for i in "ab")
        assert await send(ada, "facts", (first, None)) == []
        refused = await send(ada, "facts", (second, None))
        assert (
            codes(refused) == ["STORAGE_LIMIT"]
            and "stays on this device" in refused[0]["syncError"]["message"]
        )
        shorter = {**first, "value": "y" * 1000}
        assert await send(ada, "facts", (shorter, first)) == []
        assert await send(ada, "facts", (second, None)) == []
        assert codes(await send(ada, "facts", ({**shorter, "value": "z" * 60_000}, shorter))) == [
            "STORAGE_LIMIT"
        ]
        assert await send(ada, "facts", (dead(second), second)) == []
        assert (await ada.call("GET", "/v1/me")).json()["usage"]["bytes"] < 3000

    alone(tmp_path, scenario, **small(storage_bytes=100_000))


def test_account_over_its_storage_limit_may_only_shrink(tmp_path):
    """After a change to a lower tier, all rows stay, and the server rejects only writes that increase the size."""

    async def scenario():
        async with serve(tmp_path, tiers=small(storage_bytes=10**6)["tiers"]) as h:
            ada = await h.person()
            row = fact("f", value="x" * 50_000)
            await send(ada, "facts", (row, None))
        async with serve(tmp_path, tiers=small(storage_bytes=10_000)["tiers"]) as h:
            reconnect(h, ada)
            assert codes(await send(ada, "facts", (fact("g"), None))) == ["STORAGE_LIMIT"]
            renamed = {**row, "key": "k"}
            assert await send(ada, "facts", (renamed, row)) == []
            assert await send(ada, "facts", ({**renamed, "value": "x" * 40_000}, renamed)) == []
            assert await send(ada, "facts", (dead(row), row)) == []

    run(scenario)


def test_row_or_file_over_the_size_limit_is_rejected(tmp_path):
    async def scenario(ada):
        assert codes(await send(ada, "facts", (fact("f", value="x" * 30_000), None))) == ["TOO_LARGE"]
        large = document(ada.id, "d", size=5001)
        assert codes(await send(ada, "documents", (large, None))) == ["TOO_LARGE"]
        assert await send(ada, "documents", ({**large, "size": 5000}, None)) == []

    alone(tmp_path, scenario, **small(row_bytes=20_000, file_bytes=5000))


def test_quota_rejection_quotes_a_short_sanitized_file_name(tmp_path):
    name = f"in\u202evoice\u2028{'x' * 200}fdp.exe"

    async def scenario(ada):
        await fill(ada, 1)
        for size, code in ((10, "DOCUMENT_LIMIT"), (5001, "TOO_LARGE")):
            named = document(ada.id, "d0" if code == "TOO_LARGE" else "d", size=size, filename=name)
            [answer] = await send(ada, "documents", (named, document(ada.id, "d0")))
            message = answer["syncError"]["message"]
            assert answer["syncError"]["code"] == code and answer["filename"] == name
            assert "invoice xxx" in message and "fdp.exe " in message and len(message) < 200
            assert message.isprintable()

    alone(tmp_path, scenario, **small(documents=1, file_bytes=5000))


@pytest.mark.parametrize(("tier", "allowed"), [("FREE", False), ("JIVE", False), ("JIGGA", True)])
def test_authoritative_mode_requires_tier_jigga(tmp_path, tier, allowed):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person(tier)
            conflicts = await send(ada, "sessions", (session("s", mode="authoritative"), None))
            assert codes(conflicts) == ([] if allowed else ["TIER"])
            assert await send(ada, "sessions", (session("t"), None)) == []
            edited = session("t", mode="authoritative")
            assert codes(await send(ada, "sessions", (edited, session("t")))) == ([] if allowed else ["TIER"])

    run(scenario)


def test_waiting_rows_can_fill_the_storage_limit(tmp_path):
    async def scenario(ada):
        waiting = [block("later", n, text="x" * 15_000) for n in range(10)]
        conflicts = await send(ada, "vectorEmbeddings", *((row, None) for row in waiting))
        assert 0 < len(conflicts) < 10 and set(codes(conflicts)) == {"STORAGE_LIMIT"}
        await send(ada, "sessions", (session("s"), None))
        assert codes(await send(ada, "episodes", (episode("e", "s", aiResponse="y" * 15_000), None))) == [
            "STORAGE_LIMIT"
        ]

    alone(tmp_path, scenario, **small(storage_bytes=100_000, row_bytes=50_000))


def test_vector_much_larger_than_its_text_is_charged(tmp_path):
    """Vectors are free up to four times the size of their text."""

    async def scenario(ada):
        def padded(number):
            row = block("d", number, text="x")
            return {**row, "dims": 4096, "embedding": base64.b64encode(b"\0\0\0\0" * 4096).decode()}

        await send(ada, "documents", (document(ada.id, "d"), None))
        conflicts = await send(ada, "vectorEmbeddings", *((padded(n), None) for n in range(10)))
        assert codes(conflicts) == ["STORAGE_LIMIT"] * 6

    alone(tmp_path, scenario, **small(storage_bytes=100_000, row_bytes=50_000))


def test_full_account_can_still_borrow_documents(tmp_path):
    async def scenario(ada):
        row = document(ada.id, "d")
        assert await send(ada, "documents", (row, None)) == []
        await send(ada, "facts", (fact("f", value="x" * 3000), None))
        assert codes(await send(ada, "facts", (fact("g", value="x" * 3000), None))) == ["STORAGE_LIMIT"]
        borrowed = {**row, "activeSessions": [f"{number:0100}" for number in range(40)]}
        assert await send(ada, "documents", (borrowed, row)) == []
        too_often = {**row, "activeSessions": [f"{number:0100}" for number in range(120)]}
        assert codes(await send(ada, "documents", (too_often, borrowed))) == ["TOO_LARGE"]

    alone(tmp_path, scenario, **small(storage_bytes=5000, row_bytes=8000))
