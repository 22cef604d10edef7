"""A stale, stuck or broken memory index never blocks a prompt, and a notice informs the user."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from property.rows import dead, memory, session
from server.accounts.account_clients import owner
from server.chat.prompt_canaries import canaries_in, canary_text, create_canaries, read_context, recalled_ids
from server.in_process_server import Harness, serve, stop_index
from vademecum.services.chat.prompt_context import FALLBACK_NOTICE
from vademecum.services.chat.prompt_memory import TIMEOUT_NOTICE


async def test_stale_memory_index_recalls_no_superseded_or_deleted_memory(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        await ada.add("sessions", session("s1"))
        rows = {i: memory(i, text=canary_text(i)) for i in ("old", "dead", "here")}
        await ada.add("memories", *rows.values())
        await h.drain_jobs(ada)
        assert set(recalled_ids(await read_context(ada))) == {"old", "dead", "here"}
        stop_index(h.services.recall.indexer)
        superseded = {**rows["old"], "supersededBy": "here"}
        assert await ada.push("memories", superseded, assumed=rows["old"]) == []
        await ada.add("memories", dead(rows["dead"]))
        context = await read_context(ada)
        assert recalled_ids(context) == ["here"] and canaries_in(context) == {"here"}


def break_index(h: Harness, fault: str) -> None:
    async def read(*_: Any) -> Any:
        if fault == "broken":
            raise OSError("the disk is gone")
        await asyncio.Event().wait()

    h.services.recall.indexes.read = read  # type: ignore[method-assign]


@pytest.mark.parametrize("fault", ["stuck", "broken"])
async def test_prompt_waits_limited_time_for_memory_index_and_has_notice(tmp_path: Path, fault: str) -> None:
    async with serve(tmp_path, search_wait_s=0.05) as h:
        ada = await h.person()
        await create_canaries(ada)
        await ada.upload("song.txt", "The canary sings in the garden.", "loose")
        await h.drain_jobs(ada)

        break_index(h, fault)
        begun = time.monotonic()
        context = await read_context(ada, "loose")
        assert time.monotonic() - begun < 20
        assert (recalled_ids(context), context["scope"]["notice"]) == ([], TIMEOUT_NOTICE)
        assert context["scope"]["memory"] == {"kind": "pool"}
        assert "song.txt" in context["prompt"] and canaries_in(context) == {"ofloose"}, (
            "all other sections must be in the prompt"
        )


async def test_prompt_notice_reports_missing_memory_and_fallback_mode(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        admin, ada = await owner(h), await h.person()
        await create_canaries(ada)
        await ada.add("sessions", session("strict", mode="authoritative"))
        await admin.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
        assert TIMEOUT_NOTICE not in (await read_context(ada, "strict"))["scope"]["notice"]
        break_index(h, "broken")
        context = await read_context(ada, "strict")
        assert recalled_ids(context) == [] and canaries_in(context) == set()
        assert context["scope"]["notice"] == f"{FALLBACK_NOTICE} {TIMEOUT_NOTICE}"
