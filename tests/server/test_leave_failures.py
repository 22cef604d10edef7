"""Leaving when something fails: an account is there or has left, never half, and one that cannot be erased stops nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.agents.acting import event
from server.agents.test_spool import spooled
from server.house import house, run
from vademecum.errors import Conflict
from vademecum.model.limits import Limits
from vademecum.services.accounts import create, remove

LEAVE = {"confirm": "leave for good"}
EMAIL = "bob@example.org"
NO_ROOM = {"tiers": {"FREE": Limits(storage_bytes=1)}}


def test_an_account_that_is_there_loses_no_event_when_it_is_added_once_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path, **NO_ROOM) as h:
            await remove(h.parts, await create(h.parts, EMAIL, "FREE"))
            await create(h.parts, EMAIL, "FREE")
            folder = spooled(h, EMAIL, event("waits"))
            with pytest.raises(Conflict, match="Nothing was changed"):
                await create(h.parts, EMAIL, "FREE")
            assert len(list(folder.glob("*.json"))) == 1

    run(scenario)
