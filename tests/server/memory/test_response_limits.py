"""Responses of memory routes are bounded: lists by pages, and searches and histories by their size."""

from property.rows import memory, session
from server.in_process_server import serve
from server.memory.memory_rows import get, ids
from vademecum.services.memory.remember import SEARCHED_LENGTH
from vademecum.services.sync.pagination import PAGE_BYTES

SIZE = 900_000
FIT = PAGE_BYTES // SIZE
MANY = FIT + 3


def large(number, **more):
    text = f"word{number} {'x' * SIZE}"
    return memory(f"m{number:02d}", text=text, sessionIds=["s1"], **more)


def linked(number):
    newer = {"supersededBy": f"m{number + 1:02d}"} if number + 1 < MANY else {}
    older = {"supersedes": f"m{number - 1:02d}"} if number else {}
    return large(number, **newer, **older)


async def furnished(h, row):
    ada = await h.person()
    assert await ada.push("sessions", session("s1")) == []
    assert await ada.push("memories", *map(row, range(MANY))) == []
    return ada


async def test_pages_of_session_memories_lose_no_memory(tmp_path):
    async with serve(tmp_path) as h:
        ada = await furnished(h, large)
        found = await get(ada, "sessions/s1/memories")
        rest = await get(ada, "sessions/s1/memories", cursor=found["next"])
        assert len(ids(found["memories"])) == FIT and rest["next"] is None
        assert ids(found["memories"]) + ids(rest["memories"]) == [f"m{n:02d}" for n in reversed(range(MANY))]
        first = await get(ada, "sessions/s1/memories", limit=1)
        assert len(first["memories"]) == 1 and first["scope"] == {"kind": "pool"}


async def test_memory_search_and_history_are_limited_by_response_size(tmp_path):
    async with serve(tmp_path) as h:
        ada = await furnished(h, large)
        asked = {"query": "", "sessionId": "s1", "limit": 100}
        answer = await ada.call("POST", "/v1/memories/search", json=asked)
        assert len(answer.json()["results"]) == FIT
        eva = await furnished(h, linked)
        last = f"memories/m{MANY - 1:02d}/history"
        shown = ids((await get(eva, last, sessionId="s1"))["memories"])
        assert shown == [f"m{n:02d}" for n in reversed(range(MANY - FIT, MANY))]


async def test_memory_search_covers_only_the_start_of_large_memories(tmp_path):
    """Normalization may expand one character to eighteen, so a memory of a million characters would slow down every
    search.
    """
    async with serve(tmp_path) as h:
        ada = await h.person()
        assert await ada.push("sessions", session("s1")) == []
        text = "zebra " + "\ufdfa " * (SEARCHED_LENGTH // 2) + "giraffe"
        assert await ada.push("memories", memory("m", text=text, sessionIds=["s1"])) == []
        for word, found in (("zebra", ["m"]), ("giraffe", [])):
            asked = {"query": word, "project": None}
            answer = (await ada.call("POST", "/v1/memories/search", json=asked)).json()
            assert [hit["memory"]["id"] for hit in answer["results"]] == found
