"""Pull returns the latest rows in `seq` order, in pages without gaps, under one epoch."""

import re

from property.rows import dead, fact, project
from property.sync_wire import alone, epoch, epoch_of, page, send, seqs
from server.in_process_server import run, serve


def test_pull_returns_latest_rows_in_seq_order(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", *((fact(i), None) for i in "cab"))
        await send(ada, "facts", (fact("c", value="edited"), fact("c")))
        await send(ada, "facts", (dead(fact("a")), fact("a")))
        got = await page(ada, "facts")
        assert [(r["id"], r["_deleted"]) for r in got["documents"]] == [
            ("b", False),
            ("c", False),
            ("a", True),
        ]
        found = await seqs(ada, "facts")
        assert list(found.values()) == sorted(set(found.values()))
        assert got["checkpoint"]["lwt"] == found["facts/a"]
        assert epoch_of(got["checkpoint"]) == await epoch(ada)

    alone(tmp_path, scenario)


def test_seq_is_shared_by_all_collections(tmp_path):
    async def scenario(ada):
        for number in range(3):
            await send(ada, "facts", (fact(f"f{number}"), None))
            await send(ada, "projects", (project(f"p{number}"), None))
        found = await seqs(ada)
        order = sorted(found, key=found.__getitem__)
        assert order == [f"{c}{n}" for n in range(3) for c in ("facts/f", "projects/p")]

    alone(tmp_path, scenario)


def test_only_the_last_pull_page_is_shorter_than_the_limit(tmp_path):
    async def scenario(ada):
        for number in range(10):  # rows of another collection in between must not make a page shorter
            await send(ada, "facts", (fact(f"f{number}"), None))
            await send(ada, "projects", (project(f"p{number}"), None))
        checkpoint, lengths, ids = {"lwt": 0, "id": ""}, [], []
        while not lengths or lengths[-1] == 3:
            got = await page(ada, "facts", checkpoint["lwt"], checkpoint["id"], 3)
            checkpoint = got["checkpoint"]
            lengths.append(len(got["documents"]))
            ids += [row["id"] for row in got["documents"]]
        assert lengths == [3, 3, 3, 1] and ids == [f"f{n}" for n in range(10)]
        empty = await page(ada, "facts", checkpoint["lwt"], checkpoint["id"], 3)
        assert empty == {"documents": [], "checkpoint": checkpoint}

    alone(tmp_path, scenario)


def test_empty_pull_page_echoes_checkpoint_and_epoch(tmp_path):
    async def scenario(ada):
        await send(ada, "projects", (project("p"), None))
        got = await page(ada, "facts", 1)
        assert got["documents"] == [] and got["checkpoint"]["lwt"] == 1
        assert re.fullmatch(r"[A-Za-z0-9._~-]+", got["checkpoint"]["id"])

    alone(tmp_path, scenario)


def test_epoch_and_checkpoint_survive_a_restart(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send(ada, "facts", (fact("f"), None))
            before = await page(ada, "facts")
        async with serve(tmp_path) as h:
            again = (await h.person()).client
            again.headers.update(ada.client.headers)
            ada.client = again
            assert await page(ada, "facts") == before
            await send(ada, "facts", (fact("g"), None))
            found = await seqs(ada, "facts")
            assert found["facts/g"] > found["facts/f"]

    run(scenario)


def test_pull_page_has_forgotten_at_after_a_forget(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("a"), None))
        assert "forgottenAt" not in await page(ada, "facts")
        receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
        for collection in ("facts", "projects"):
            assert (await page(ada, collection))["forgottenAt"] == receipt["at"]

    alone(tmp_path, scenario)
