"""A job runs at the earliest requested time, once for all requests made before the run."""

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
    """Count the runs of a job. A run lasts until `gate` is set."""

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
    """Return a clock that tests can advance. The queue waits in real time and then reads this clock."""
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


def test_marker_is_written_after_response_unless_cancelled(tmp_path):
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
            assert not await answering, "the marker was written before the response"
            assert marker.exists()
            job.cancel("ada")
            job.schedule("bob")
            job.cancel("bob")
            await ended(job)
            assert list(marker.parent.iterdir()) == []

    asyncio.run(scenario())


def test_requests_before_the_run_are_combined(tmp_path):
    async def scenario():
        async with begun(tmp_path) as (job, works):
            for _ in range(10):
                job.schedule("ada")
            await ended(job)
            assert works.done == 1 and not (tmp_path / "test" / "ada").exists()

    asyncio.run(scenario())


def test_earliest_requested_time_wins(tmp_path):
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


def test_request_during_a_run_keeps_its_delay(tmp_path):
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


def test_minimum_interval_applies_unless_run_now_is_called(tmp_path):
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


def test_request_near_end_of_interval_starts_the_run(tmp_path, clock):
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


def test_request_during_a_run_waits_for_the_interval(tmp_path, clock):
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


def test_debounced_request_waits_for_quiet_within_its_limit(tmp_path, clock):
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


def test_run_now_during_a_run_starts_another_run(tmp_path):
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


def test_run_now_skips_the_retry_delay(tmp_path, monkeypatch):
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
            assert works.done == 0, "an ordinary request must not end the retry delay"
            job.run_now("ada")
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_drain_also_completes_requests_made_during_a_run(tmp_path):
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


def test_due_time_survives_a_restart(tmp_path):
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


def test_interrupted_run_is_repeated_after_restart(tmp_path):
    async def scenario():
        async with begun(tmp_path, 0) as (job, works):
            works.gate.clear()
            job.schedule("ada")
            await works.under_way.wait()
            job.schedule("ada", LATE)
        async with begun(tmp_path) as (job, works):
            await ended(job)
            assert works.done == 1, "the interrupted run waits for the later request"

    asyncio.run(scenario())


def test_request_between_a_run_and_close_is_kept(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            works.gate.set()
            asyncio.get_running_loop().call_soon(job.schedule, "ada")  # runs after the last step of the job
            await asyncio.create_task(job.close())
            assert works.done == 1
        async with begun(tmp_path) as (job, works):
            assert job.is_pending("ada")

    asyncio.run(scenario())


def test_cancelled_request_does_not_run(tmp_path):
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


def test_quiet_request_right_after_cancel_still_runs(tmp_path):
    """The task of the cancelled request has not ended yet when the new request is made."""

    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            job.schedule("ada")
            await asyncio.sleep(0.01)
            job.cancel("ada")
            job.schedule_when_quiet("ada", quiet_s=0.1, max_delay_s=LATE)
            await ended(job)
            assert works.done == 1

    asyncio.run(scenario())


def test_close_right_after_run_now_prevents_the_run(tmp_path):
    """The run must not begin after the queue was closed. Its request is kept for the next start."""

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


def test_marker_stays_until_awaited_run_ends(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.schedule("ada")
            done = asyncio.create_task(job.run_and_wait("ada"))
            await works.under_way.wait()
            assert (tmp_path / "test" / "ada").exists(), "a kill during the run would lose the request"
            works.gate.set()
            await done
            await ended(job)
            assert works.done == 1 and not (tmp_path / "test" / "ada").exists()

    asyncio.run(scenario())


def test_awaited_run_raises_its_error_and_is_retried(tmp_path, monkeypatch):
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


def test_awaited_run_starts_after_the_current_run(tmp_path):
    async def scenario():
        async with begun(tmp_path, LATE) as (job, works):
            works.gate.clear()
            job.run_now("ada")
            await works.under_way.wait()
            done = asyncio.create_task(job.run_and_wait("ada"))
            await asyncio.sleep(0)
            works.gate.set()
            await done
            assert works.done == 2, "the current run had begun before the request"

    asyncio.run(scenario())


def test_close_ends_the_wait_for_a_run(tmp_path):
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
def test_future_marker_is_clamped_to_its_delay(tmp_path, content):
    """The clock was set back after the marker was written."""

    async def scenario():
        async with begun(tmp_path, LATE) as (job, _):
            job.schedule("ada", 0.1 if content == "0" else None)
            await asyncio.sleep(0)
        marker = tmp_path / "test" / "ada"
        if content != "0":
            marker.write_text(content)  # a marker of an earlier version, or a damaged one
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
