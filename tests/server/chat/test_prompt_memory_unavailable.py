"""A stale, stuck or broken memory index never blocks a prompt, and a notice informs the user."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from property.rows import dead, memory, session
from server.accounts.account_clients import owner
from server.chat.prompt_canaries import furnished, heard_of, recalled, song, told
from server.in_process_server import House, house, stop_index
from vademecum.services.chat.prompt_context import FALLBACK_NOTICE
from vademecum.services.chat.prompt_memory import TIMEOUT_NOTICE


async def test_stale_index_recalls_no_superseded_or_deleted_memory(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        await ada.add("sessions", session("s1"))
        rows = {i: memory(i, text=song(i)) for i in ("old", "dead", "here")}
        await ada.add("memories", *rows.values())
        await h.settle(ada)
        assert set(recalled(await told(ada))) == {"old", "dead", "here"}
        stop_index(h.services.recall.indexer)
        superseded = {**rows["old"], "supersededBy": "here"}
        assert await ada.push("memories", superseded, assumed=rows["old"]) == []
        await ada.add("memories", dead(rows["dead"]))
        made = await told(ada)
        assert recalled(made) == ["here"] and heard_of(made) == {"here"}


def break_index(h: House, fault: str) -> None:
    async def read(*_: Any) -> Any:
        if fault == "broken":
            raise OSError("the disk is gone")
        await asyncio.Event().wait()

    h.services.recall.indexes.read = read  # type: ignore[method-assign]


@pytest.mark.parametrize("fault", ["stuck", "broken"])
async def test_unavailable_memory_index_times_out_with_notice(tmp_path: Path, fault: str) -> None:
    async with house(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        await furnished(ada)
        await ada.upload("song.txt", "The canary sings in the garden.", "loose")
        await h.settle(ada)

        break_index(h, fault)
        begun = time.monotonic()
        made = await told(ada, "loose")
        assert time.monotonic() - begun < 20
        assert (recalled(made), made["scope"]["notice"]) == ([], TIMEOUT_NOTICE)
        assert made["scope"]["memory"] == {"kind": "pool"}
        assert "song.txt" in made["prompt"] and heard_of(made) == {"ofloose"}, "all else is there"


async def test_notice_reports_missing_memory_and_fallback_mode(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        boss, ada = await owner(h), await h.person()
        await furnished(ada)
        await ada.add("sessions", session("strict", mode="authoritative"))
        await boss.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
        assert TIMEOUT_NOTICE not in (await told(ada, "strict"))["scope"]["notice"]
        break_index(h, "broken")
        made = await told(ada, "strict")
        assert recalled(made) == [] and heard_of(made) == set()
        assert made["scope"]["notice"] == f"{FALLBACK_NOTICE} {TIMEOUT_NOTICE}"
