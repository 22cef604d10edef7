"""Pages list the newest rows first and each row once, despite concurrent writes."""

import asyncio
from unittest.mock import ANY

import pytest

from property.rows import day, dead, episode, session
from server.in_process_server import check_problem, serve, stop_index
from vademecum.engines.duckdb.user_store import DuckDBUserStore
from vademecum.services.sync.pagination import PAGE_BYTES

TURNS = "sessions/s1/episodes"


def turn(number, **more):
    """Return a turn. Three consecutive turns have the same timestamp, so pages must also order by id."""
    return episode(f"e{number:02d}", "s1", createdAt=day(1 + number // 3), **more)


async def talked(h, count=20):
    ada = await h.person()
    assert await ada.push("sessions", session("s1")) == []
    # Push in an order that differs from the order of creation.
    assert await ada.push("episodes", *sorted(map(turn, range(count)), key=lambda row: row["id"][::-1])) == []
    return ada


async def page(ada, limit, cursor="", path=TURNS):
    answer = await ada.call("GET", f"/v1/{path}", params={"limit": limit, "cursor": cursor})
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["episodes"]], answer.json()["next"]


async def turned(ada, limit, path=TURNS):
    """Return all pages from the first to the last."""
    found, cursor, used = [], "", set()
    while cursor is not None:
        assert cursor not in used, "the pages repeat a cursor"
        used.add(cursor)
        ids, cursor = await page(ada, limit, cursor, path)
        found.append(ids)
    return found


@pytest.mark.parametrize("limit", [1, 7, 10, 20, 1000])
async def test_pages_list_every_row_once_and_newest_first(tmp_path, limit):
    async with serve(tmp_path) as h:
        ada = await talked(h)
        found = await turned(ada, limit)
        assert [i for ids in found for i in ids] == [f"e{n:02d}" for n in reversed(range(20))]
        assert {len(ids) for ids in found[:-1]} <= {limit} and 0 < len(found[-1]) <= limit


async def test_cursor_continues_despite_inserted_and_deleted_rows(tmp_path):
    async with serve(tmp_path) as h:
        ada = await talked(h)
        first, cursor = await page(ada, 5)
        assert first == ["e19", "e18", "e17", "e16", "e15"]
        newer = episode("newer", "s1", createdAt=day(28))
        edited = turn(14, aiResponse="edited")
        assert await ada.push("episodes", newer, turn(30)) == []
        assert await ada.push("episodes", edited, assumed=turn(14)) == []
        # One of the deleted turns is the row that the cursor names.
        assert await ada.push("episodes", dead(turn(15)), dead(turn(13))) == []
        second, cursor = await page(ada, 5, cursor)
        assert second == ["e14", "e12", "e11", "e10", "e09"]
        assert (await page(ada, 5))[0][:2] == ["newer", "e30"]


async def test_reading_a_page_reads_only_its_own_rows_and_changed_rows(tmp_path, monkeypatch):
    async with serve(tmp_path) as h:
        ada = await talked(h)
        await h.drain_jobs(ada)
        stop_index(h.services.recall.indexer)  # otherwise the test would also count the rows that it reads
        await page(ada, 3)
        read, bodies = [], DuckDBUserStore.read_bodies

        async def noted(store, keys):
            read.extend(keys)
            return await bodies(store, keys)

        monkeypatch.setattr(DuckDBUserStore, "read_bodies", noted)
        _, cursor = await page(ada, 3)
        assert await page(ada, 3, cursor) == (["e16", "e15", "e14"], ANY)
        assert read == [f"episodes/e{n}" for n in (19, 18, 17, 16, 15, 14)]
        assert await ada.push("episodes", {**turn(2), "createdAt": day(28)}, assumed=turn(2)) == []
        read.clear()
        assert (await page(ada, 3))[0] == ["e02", "e19", "e18"]
        assert sorted(read) == [f"episodes/e{n}" for n in ("02", "02", "18", "19")]


async def test_oversized_rows_make_shorter_pages_without_loss(tmp_path):
    async with serve(tmp_path) as h:
        ada = await talked(h, 6)
        assert await ada.push("episodes", *(turn(n, aiResponse="x" * 900_000) for n in range(6, 18))) == []
        found = await turned(ada, 100)
        assert [len(ids) for ids in found] == [PAGE_BYTES // 900_000, 18 - PAGE_BYTES // 900_000]
        assert [i for ids in found for i in ids] == [f"e{n:02d}" for n in reversed(range(18))]


async def test_last_page_has_no_cursor_and_may_be_empty(tmp_path):
    async with serve(tmp_path) as h:
        ada = await talked(h, 2)
        assert await page(ada, 2) == (["e01", "e00"], None)
        _, cursor = await page(ada, 1)
        assert await ada.push("episodes", dead(turn(0))) == []
        assert await page(ada, 1, cursor) == ([], None)


async def test_invalid_page_limit_and_cursor_are_rejected(tmp_path):
    lists = (TURNS, "episodes", "projects", "sessions", "entities/by-type/person")
    async with serve(tmp_path) as h:
        ada = await talked(h, 1)
        for path in lists:
            for wrong in ("0", "-1", "1001", "1.5", "many", ""):
                params = {"project": "*", "limit": wrong}
                check_problem(await ada.call("GET", f"/v1/{path}", params=params), 400, "BAD_REQUEST")
            for wrong in ("zz", "W10=", "WzEsMl0=", "ä", "W10", "bnVsbA=="):
                params = {"project": "*", "cursor": wrong}
                check_problem(await ada.call("GET", f"/v1/{path}", params=params), 400, "BAD_REQUEST")
            for fine in (1, 1000):
                answer = await ada.call("GET", f"/v1/{path}", params={"project": "*", "limit": fine})
                assert answer.status_code == 200, answer.text


async def test_pagination_is_consistent_during_pushes(tmp_path):
    async with serve(tmp_path) as h:
        ada = await talked(h)

        async def pushing():
            for number in range(40, 80):
                assert await ada.push("episodes", turn(number)) == []
                if number % 2:
                    assert await ada.push("episodes", dead(turn(number))) == []

        busy = asyncio.create_task(pushing())
        rounds = 0
        while not busy.done():
            found = [i for ids in await turned(ada, 3) for i in ids]
            assert found == sorted(set(found), reverse=True) and found[-20:] == [
                f"e{n:02d}" for n in reversed(range(20))
            ]
            rounds += 1
        await busy
        assert rounds
