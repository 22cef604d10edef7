"""Large pull pages are streamed in pieces, which bounds memory and tolerates slow clients."""

import json
import shutil

import pytest

from property.rows import dead, fact
from property.sync_wire import send
from server.in_process_server import run, serve
from vademecum.errors import OtherEpoch
from vademecum.services.sync.pull import pull


def in_a_house(tmp_path, scenario):
    async def whole():
        async with serve(tmp_path, erase_delay_s=60) as h:
            ada = await h.person()
            made = [fact(f"f{number}", value=f"{number} " + "x" * 300_000) for number in range(12)]
            for row in made:
                await send(ada, "facts", (row, None))
            await scenario(h, ada, made)

    run(whole)


async def pieces_of(h, ada, limit=100):
    return await pull(h.services.users, ada.id, "facts", 0, "", limit)


async def rest(pieces, begun=b""):
    return json.loads(begun + b"".join([piece async for piece in pieces]))


def test_large_pull_page_is_streamed_in_pieces(tmp_path):
    async def scenario(h, ada, made):
        pieces = [piece async for piece in await pieces_of(h, ada)]
        assert max(map(len, pieces)) < 2 * 2**20 and len(pieces) > 4
        page = json.loads(b"".join(pieces))
        assert [row["id"] for row in page["documents"]] == [row["id"] for row in made]
        answer = await ada.call("GET", "/v1/sync/facts/0/pull?limit=7")
        assert [row["id"] for row in answer.json()["documents"]] == [row["id"] for row in made[:7]]
        after = answer.json()["checkpoint"]
        left = await ada.call("GET", f"/v1/sync/facts/0/pull?lwt={after['lwt']}&id={after['id']}&limit=7")
        assert [row["id"] for row in left.json()["documents"]] == [row["id"] for row in made[7:]]
        assert left.json()["checkpoint"] == page["checkpoint"]

    in_a_house(tmp_path, scenario)


def test_account_is_not_held_open_between_pieces_of_a_page(tmp_path):
    async def scenario(h, ada, made):
        pieces = await pieces_of(h, ada)
        begun = await anext(pieces) + await anext(pieces)
        (store,) = h.services.users.attached_stores()
        assert store.pins == 0
        await send(ada, "facts", (dead(made[11]), made[11]))
        await h.services.users.rewrite(ada.id)
        page = await rest(pieces, begun)
        assert [row["id"] for row in page["documents"]] == [row["id"] for row in made]
        assert [row["_deleted"] for row in page["documents"]] == [False] * 11 + [True]
        assert len(await ada.pull("facts")) == 12

    in_a_house(tmp_path, scenario)


def test_restore_between_pieces_aborts_the_pull_page(tmp_path):
    async def scenario(h, ada, made):
        pieces = await pieces_of(h, ada)
        await anext(pieces), await anext(pieces)
        copy = tmp_path / "copy.duckdb"
        async with h.services.users.open(ada.id) as store:
            await store.checkpoint()
            shutil.copyfile(store.folder / "records.duckdb", copy)
        await h.services.users.replace(ada.id, copy, 0, lambda tx: None, lambda: None)
        with pytest.raises(OtherEpoch):
            await rest(pieces)

    in_a_house(tmp_path, scenario)
