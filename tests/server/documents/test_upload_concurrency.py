"""Limits on concurrent uploads. Uploads of one user do not block those of others."""

import asyncio

import pytest

from server.in_process_server import check_problem, run, serve
from unit.engines.files import hostile_files
from unit.engines.files.file_reader import readers
from vademecum.engines.files.subprocess_runner import CORES
from vademecum.errors import Busy
from vademecum.model.sync.quotas import Limits
from vademecum.services.documents.upload import UploadedFile
from vademecum.services.runtime.concurrency_limits import UploadLimit
from wait_until import soon


async def reading(count):
    await soon(lambda: len(readers()) >= count)


async def give_up(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def slow(person, number):
    """Start the upload of a file that takes a minute to read."""
    return asyncio.create_task(person.upload(f"{number}.docx", hostile_files.slow() + bytes(number)))


def test_upload_over_user_limit_is_rejected_without_storing(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            tasks = [slow(ada, n) for n in range(h.services.uploads.limit.per_user)]
            await reading(1)
            answer = await ada.upload("notes.txt", "One more.")
            detail = check_problem(answer, 503, "BUSY")["detail"]
            assert "notes.txt was not stored" in detail and "Try again" in detail
            assert int(answer.headers["Retry-After"]) > 0
            assert (await bob.upload("notes.txt", "Another user's.")).status_code == 201
            await give_up(*tasks)
            assert (await ada.upload("notes.txt", "One more.")).status_code == 201
            assert len(await ada.live("documents")) == 1

    run(scenario)


def test_concurrent_uploads_of_all_users_are_limited(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            h.services.uploads.limit.total = 2
            people = [await h.person() for _ in range(3)]
            tasks = [slow(person, 0) for person in people[:2]]
            await reading(1)
            answer = await people[2].upload("notes.txt", "A third user's.")
            assert "as many files as it can" in check_problem(answer, 503, "BUSY")["detail"]
            await give_up(*tasks)
            assert (await people[2].upload("notes.txt", "A third user's.")).status_code == 201

    run(scenario)


def test_upload_over_the_limit_is_not_read(tmp_path):
    class Unreadable:
        def __getattr__(self, name):
            raise AssertionError("it was read")

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            h.services.uploads.limit = UploadLimit(per_user=0)
            with pytest.raises(Busy):
                await h.services.uploads.upload(ada.id, UploadedFile("a.txt", Unreadable()), Limits())

    run(scenario)


def test_slow_files_of_other_users_do_not_block_uploads(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            bob = await h.person()
            tasks = [slow(await h.person(), 0) for _ in range(CORES)]
            await reading(CORES)
            async with asyncio.timeout(20):  # each slow upload takes a minute
                assert (await bob.upload("notes.txt", "A short one.")).status_code == 201
            assert not any(task.done() for task in tasks)
            await give_up(*tasks)

    run(scenario)


def test_slow_files_of_one_user_leave_cores_free_for_other_users(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            tasks = [slow(ada, n) for n in range(h.services.uploads.limit.per_user)]
            await reading(1)
            async with asyncio.timeout(20):  # each slow upload takes a minute
                assert (await bob.upload("notes.txt", "A short one.")).status_code == 201
            assert not any(task.done() for task in tasks)
            await give_up(*tasks)

    run(scenario)
