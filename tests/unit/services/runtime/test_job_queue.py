"""When the work of a job is done: at the earliest moment that was asked for, once for all who asked before it."""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from vademecum.errors import Stopping
from vademecum.services.runtime import job_queue
from vademecum.services.runtime.job_queue import JobQueue
from wait_until import soon

SOON, LATE = 0.2, 600.0


class Works:
    """A job's work, counted. It goes on while `gate` is shut."""

    def __init__(self):
        self.done = self.failures = 0
        self.under_way = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def work(self, user_id):
        self.under_way.set()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not today")
        await self.gate.wait()
        self.under_way.clear()
        self.done += 1


@pytest.fixture
def clock(monkeypatch):
    """What the time is to a queue: a test moves it on. Waits begin and end as ever, and look at it then."""
    told = SimpleNamespace(now=time.monotonic(), time=time.time)
    told.monotonic = lambda: told.now
    monkeypatch.setattr(job_queue, "time", told)
    return told


@asynccontextmanager
async def begun(folder, delay_s=SOON, min_interval_s=0.0):
    works = Works()
    job = JobQueue("test", folder, works.work, delay_s=delay_s, min_interval_s=min_interval_s)
    job.start()
    try:
        yield job, works
    finally:
        await job.close()


async def ended(job):
    await soon(lambda: not job.is_pending("ada"))


def test_an_ask_is_marked_behind_what_its_asker_does_next_and_not_if_it_was_taken_back(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, _):
            marker, committed = tmp_path / "test" / "ada", asyncio.Event()

            async def answer():
                await committed.wait()
                return marker.exists()

            answering = asyncio.create_task(answer())
            await asyncio.sleep(0)
            committed.set()
            job.schedule("ada")
            assert not await answering, "the answer goes out first"
            assert marker.exists()
            job.cancel("ada")
            job.schedule("bob")
            job.cancel("bob")
            await ended(job)
            assert list(marker.parent.iterdir()) == []

    asyncio.run(scenario())


def test_many_asks_before_the_work_are_one(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            for _ in range(10):
                job.schedule("ada")
            await ended(job)
            assert works.done == 1 and not (tmp_path / "test" / "ada").exists()

    asyncio.run(scenario())


def test_a_later_ask_does_not_put_the_work_off_and_an_earlier_one_brings_it_forward(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            job.schedule("ada")
            job.schedule("ada", LATE)
            await ended(job)
            job.schedule("ada", LATE)
            await asyncio.sleep(0.05)
            job.schedule("ada")
            await ended(job)
            assert works.done == 2

    asyncio.run(scenario())


def test_an_ask_while_the_work_runs_is_served_after_its_own_delay(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            for delay, served in ((LATE, 1), (SOON, 2)):
                works.done = 0
                works.gate.clear()
                job.run_now("ada")
                await works.under_way.wait()
                job.schedule("ada", delay)
                works.gate.set()
                await soon(lambda s=served: works.done >= s)
                await asyncio.sleep(0.1)
                assert works.done == served and job.is_pending("ada") == (delay == LATE)

    asyncio.run(scenario())


def test_turns_are_kept_apart_but_for_whoever_hurries(tmp_path):
    async def scenario():
        async with begun(tmp_path, 0, min_interval_s=LATE) as (job, works):
            job.schedule("ada")
            await ended(job)
            job.schedule("ada")
            job.schedule("bob")
            await soon(lambda: works.done == 2)
            await asyncio.sleep(0.05)
            assert works.done == 2 and job.is_pending("ada") and not job.is_pending("bob")
            job.run_now("ada")
            await ended(job)
            assert works.done == 3

    asyncio.run(scenario())


def test_an_ask_when_the_time_between_two_turns_is_nearly_over_begins_the_next(tmp_path, clock):
    async def scenario():
        async with begun(tmp_path, 0, min_interval_s=LATE) as (job, works):
            job.schedule("ada")
            await ended(job)
            for further, done in ((0.5, 1), (0.2, 2)):
                clock.now += further * LATE
                job.schedule("ada")
                await asyncio.sleep(0.05)
                assert works.done == done

    asyncio.run(scenario())


def test_one_that_was_asked_for_during_a_turn_comes_when_they_are_far_enough_apart(tmp_path, clock):
    async def scenario():
        async with begun(tmp_path, 0, min_interval_s=0.1) as (job, works):
            works.gate.clear()
            job.schedule("ada")
            await works.under_way.wait()
            job.schedule("ada")
            works.gate.set()
            await asyncio.sleep(0.3)
            assert works.done == 1 and job.is_pending("ada")
            clock.now += 0.1
            await ended(job)
            assert works.done == 2

    asyncio.run(scenario())


def test_what_is_asked_for_when_it_is_quiet_waits_for_that_but_not_for_ever_and_not_for_who_hurries(
    tmp_path, clock
):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            for _ in range(5):
                job.schedule_when_quiet("ada", quiet_s=0.1, max_delay_s=LATE)
                await asyncio.sleep(0.01)
                clock.now += 0.07
            await asyncio.sleep(0.3)
            assert works.done == 0
            clock.now += 0.04
            await ended(job)
            assert works.done == 1
            async with asyncio.timeout(60):
                while works.done == 1:
                    job.schedule_when_quiet("ada", quiet_s=0.1, max_delay_s=0.5)
                    clock.now += 0.01
                    await asyncio.sleep(0.01)
            job.run_now("ada")
            await ended(job)
            works.done = 2
            job.schedule_when_quiet("ada", quiet_s=LATE, max_delay_s=LATE)
            await asyncio.sleep(0.01)
            job.run_now("ada")
            job.schedule_when_quiet("ada", quiet_s=LATE, max_delay_s=LATE)
            await ended(job)
            assert works.done == 3

    asyncio.run(scenario())


def test_who_hurries_while_the_work_runs_is_served_right_after(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            job.schedule("ada")
            job.run_now("ada")
            works.gate.set()
            await ended(job)
            assert works.done == 2

    asyncio.run(scenario())


def test_who_hurries_does_not_wait_until_work_that_failed_is_tried_again(tmp_path, monkeypatch):
    async def scenario():
        monkeypatch.setattr(job_queue, "RETRY_S", (LATE,))
        async with begun(tmp_path) as (job, works):
            works.failures = 1
            job.run_now("ada")
            await soon(lambda: works.failures == 0)
            await asyncio.sleep(0.05)
            assert job.is_pending("ada") and works.done == 0
            job.schedule("ada", 0)
            await asyncio.sleep(0.05)
            assert works.done == 0, "an ask like any other does not cut the waiting short"
            job.run_now("ada")
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_settling_leaves_nothing_to_do_also_when_more_was_asked_meanwhile(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            job.schedule("ada")
            settling = asyncio.create_task(job.drain("ada"))
            await asyncio.sleep(0.05)
            works.gate.set()
            await asyncio.wait_for(settling, 60)
            assert works.done == 2 and not job.is_pending("ada")

    asyncio.run(scenario())


def test_a_restart_keeps_the_moment_when_the_work_is_due(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            job.schedule("ada", 1.5)
            job.schedule("bob", LATE)
        async with begun(tmp_path) as (job, works):
            await asyncio.sleep(0.3)
            assert works.done == 0 and job.count_pending() == 2
            await ended(job)
            assert works.done == 1 and job.is_pending("bob")

    asyncio.run(scenario())


def test_work_that_is_cut_off_is_taken_up_by_the_next_start(tmp_path):
    async def scenario():
        async with begun(tmp_path, 0) as (job, works):
            works.gate.clear()
            job.schedule("ada")
            await works.under_way.wait()
            job.schedule("ada", LATE)
        async with begun(tmp_path) as (job, works):
            await ended(job)
            assert works.done == 1, "what was under way does not wait for what was asked meanwhile"

    asyncio.run(scenario())


def test_who_asks_between_the_end_of_the_work_and_a_stop_is_remembered(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            works.gate.set()
            asyncio.get_running_loop().call_soon(job.schedule, "ada")  # behind the last step of the work
            await asyncio.create_task(job.close())
            assert works.done == 1
        async with begun(tmp_path) as (job, works):
            assert job.is_pending("ada")

    asyncio.run(scenario())


def test_who_is_forgotten_in_the_moment_of_asking_has_no_work(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            job.schedule("ada")
            job.cancel("ada")
            await ended(job)
            job.schedule("ada")
            job.cancel("ada")
            job.schedule("ada")
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_what_is_asked_for_when_it_is_quiet_right_behind_a_forgetting_is_done(tmp_path):
    """While the work that was forgotten has not ended yet."""

    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            job.schedule("ada")
            await asyncio.sleep(0.01)
            job.cancel("ada")
            job.schedule_when_quiet("ada", quiet_s=0.1, max_delay_s=LATE)
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_a_stop_right_behind_an_ask_is_not_overheard(tmp_path):
    """The work would begin after it."""

    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            job.schedule("ada")
            await asyncio.sleep(0.01)
            job.run_now("ada")
            await job.close()
            assert works.done == 0
        async with begun(tmp_path) as (job, works):
            assert job.is_pending("ada")

    asyncio.run(scenario())


def test_marker_stays_until_work_asked_for_now_is_done(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.schedule("ada")
            done = asyncio.create_task(job.run_and_wait("ada"))
            await works.under_way.wait()
            assert (tmp_path / "test" / "ada").exists(), "a kill now would lose the work"
            works.gate.set()
            await done
            await ended(job)
            assert works.done == 1 and not (tmp_path / "test" / "ada").exists()

    asyncio.run(scenario())


def test_work_asked_for_now_raises_its_failure_and_is_retried(tmp_path, monkeypatch):
    monkeypatch.setattr(job_queue, "RETRY_S", (SOON,))

    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.failures = 1
            with pytest.raises(RuntimeError, match="not today"):
                await job.run_and_wait("ada")
            assert (tmp_path / "test" / "ada").exists()
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_work_asked_for_now_runs_after_the_work_under_way(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            done = asyncio.create_task(job.run_and_wait("ada"))
            await asyncio.sleep(0)
            works.gate.set()
            await done
            assert works.done == 2, "the first turn had begun before it was asked for"

    asyncio.run(scenario())


def test_stop_ends_the_wait_for_work_asked_for_now(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            waiting = asyncio.create_task(job.run_and_wait("ada"))
            await works.under_way.wait()
            await job.close()
            with pytest.raises(Stopping):
                await waiting
            with pytest.raises(Stopping):
                await job.run_and_wait("bob")
            assert (tmp_path / "test" / "ada").exists()

    asyncio.run(scenario())


@pytest.mark.parametrize("content", ["0", "", "nan?"])
def test_marker_of_the_future_is_clamped_to_its_delay(tmp_path, content):
    """The clock was set back since it was written."""

    async def scenario():
        async with begun(tmp_path, LATE) as (job, _):
            job.schedule("ada", 0.1 if content == "0" else None)
            await asyncio.sleep(0)
        marker = tmp_path / "test" / "ada"
        if content != "0":
            marker.write_text(content)  # of an earlier version, or damaged
        far = time.time() + 400 * 86_400
        os.utime(marker, (far, far))
        async with begun(tmp_path, SOON) as (job, works):
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_delay_longer_than_the_default_survives_a_restart(tmp_path):
    async def scenario():
        async with begun(tmp_path, SOON) as (job, _):
            job.schedule("ada", LATE)
            await asyncio.sleep(0)
        async with begun(tmp_path, SOON) as (job, works):
            assert LATE - 60 < job._due["ada"] - time.monotonic() <= LATE
            assert works.done == 0

    asyncio.run(scenario())
