"""If rows of one account cannot be erased, the due erasures of other accounts still run."""

from __future__ import annotations

from pathlib import Path

import pytest

from property.rows import dead, fact
from server.in_process_server import run, serve
from vademecum.errors import Broken
from vademecum.services.data.erase import erase_due
from wait_until import soon


def test_failed_erasure_of_one_account_does_not_stop_other_erasures(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, erase_delay_s=600) as h:
            people = [await h.person() for _ in range(3)]
            for one in people:
                await one.add("facts", fact("f1"))
                await one.push("facts", dead(fact("f1")), assumed=fact("f1"))
            job = h.services.background_jobs.jobs["erase"]
            assert all(job.is_pending(one.id) for one in people)
            h.services.users.recovery._is_closing = True  # prevents a recovery, which would lift the fence
            h.services.users.fences.fence(people[0].id, "it is damaged")
            emails = {one.id: f"{number}@example.org" for number, one in enumerate(people)}
            with pytest.raises(Broken, match=r"2 of 3 accounts were erased.*0@example\.org"):
                await erase_due(tmp_path, job, emails)
            await soon(lambda: [job.is_pending(one.id) for one in people] == [True, False, False])

    run(scenario)
