"""Forgetting all data of a large account in batches uses little memory and gives a complete receipt."""

import asyncio

import msgspec

from property.rows import episode, fact, session
from server.in_process_server import run, serve
from vademecum.services.data import forget
from vademecum.services.sync.batches import BATCH_BYTES


def test_forget_reads_rows_in_bounded_batches(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await h.person()
            big = [fact(f"f{n}", value=f"{n} " + "x" * 300_000) for n in range(10)]
            assert await ada.push("facts", *big) == []
            portions = []
            note = forget._note
            monkeypatch.setattr(
                forget,
                "_note",
                lambda seen, portion, *more: (portions.append(portion), note(seen, portion, *more)),
            )
            bodies = []
            delete_all_rows = forget._delete_all_rows
            monkeypatch.setattr(
                forget,
                "_delete_all_rows",
                lambda tx, stubs: (delete_all_rows(tx, stubs), bodies.append(len(tx._bodies)))[0],
            )
            receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
            assert (receipt["rows"], receipt["leftovers"]) == (10, 0) and receipt["checked"] >= 10
            assert receipt["bytes"] == sum(len(msgspec.json.encode(row)) for row in big)
            sizes = [sum(len(body) for _, body in portion) for portion in portions]
            assert len(sizes) > 1 and max(sizes) <= BATCH_BYTES
            assert bodies == [0]

    run(scenario)


def test_forget_includes_rows_written_while_it_runs(tmp_path, monkeypatch):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await h.person()
            old = session("s1")
            changed = {**old, "title": "another", "updatedAt": "2024-01-01T00:00:00.000Z"}
            assert await ada.push("sessions", old, session("s2")) == []
            assert await ada.push("episodes", episode("waits", "unknown")) == []
            look = forget._look

            async def look_and_be_late(store):
                seen = await look(store)
                # Push in another task, because a task that has opened an account's file must not open it again.
                assert await asyncio.create_task(ada.push("sessions", changed, assumed=old)) == []
                assert await asyncio.create_task(ada.push("facts", fact("f1"))) == []
                return seen

            monkeypatch.setattr(forget, "_look", look_and_be_late)
            receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
            assert receipt["rows"] == 4 and receipt["leftovers"] == 0
            dead = {row["id"]: row for row in await ada.pull("sessions")}
            assert all(row["_deleted"] and not row["title"] for row in dead.values())
            assert dead["s1"]["updatedAt"] == changed["updatedAt"]
            assert dead["s2"]["updatedAt"] == old["updatedAt"]
            assert await ada.live("facts") == {} and await ada.live("episodes") == {}

    run(scenario)
