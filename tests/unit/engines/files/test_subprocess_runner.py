"""The worker process: time limit, memory limit, crashes and cancellation."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vademecum
from unit.engines.files import hostile_files
from unit.engines.files.file_reader import (
    children,
    code_of,
    parse,
    read_in_new_process,
    readers,
    refused,
    run_alone,
)
from unit.engines.files.sample_files import pdf, slides, word, workbook
from vademecum.engines.files.result import Limits, Unreadable
from vademecum.engines.files.subprocess_runner import SLOTS

pytestmark = pytest.mark.usefixtures("unharmed_anew")
MB = 2**20
SOUND = {
    "docx": word(*["The lease ends in May."] * 200),
    "xlsx": workbook(Rent=[["January", 500]] * 500),
    "pptx": slides(["Lease", "It ends in May."]),
    "pdf": pdf("The lease ends in May."),
}
SOAK = bool(os.environ.get("SOAK"))


async def started(count=1):
    """Wait until this number of workers is running. Return their process ids."""
    for _ in range(1000):
        found = readers()
        if len(found) >= count:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("no reader was started")


# The CPU limit and the wall-clock limit differ by less than a second. Either may end the worker, with the same error.
@pytest.mark.parametrize("seconds", [0.99, 1, 1.99] if SOAK else [1])
def test_slow_file_times_out(seconds):
    data = hostile_files.slow()
    before = time.monotonic()
    assert refused(data, by=read_in_new_process, seconds=seconds) == "PARSE_TIMEOUT"
    assert time.monotonic() - before < seconds + 15


def test_cpu_limit_is_reported_as_timeout(tmp_path):
    # run without the wall-clock limit, so that only the CPU limit can end the worker
    ended, outcome = run_alone(hostile_files.slow(), tmp_path, seconds=0.5)
    assert outcome is None
    assert ended == -signal.SIGXCPU


def test_hanging_worker_is_killed():
    async def go():
        reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx", Limits(seconds=1)))
        (child,) = await started()
        os.kill(child, signal.SIGSTOP)  # uses no CPU time, so only the wall-clock limit can end the worker
        with pytest.raises(Unreadable) as caught:
            await reading
        return code_of(caught.value)

    assert asyncio.run(go()) == "PARSE_TIMEOUT"


@pytest.mark.parametrize(
    "text", [b"word " * 3_000_000, b"[" + b"1,[]," * 1_000_000 + b"1]"], ids=["text", "json"]
)
def test_memory_limit_is_reported(text):
    assert refused(text, "a.json", read_in_new_process, memory_bytes=60 * MB) == "PARSE_MEMORY"


def outcomes(data, sizes):
    """Parse with each memory limit in MB. Map the limit to the error code, or to "read" or "nothing"."""
    results = {}
    for memory in sizes:
        try:
            results[memory] = (
                "read" if read_in_new_process(data, memory_bytes=memory * MB).parts else "nothing"
            )
        except Unreadable as error:
            results[memory] = code_of(error)
    return results


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        (b"word " * 3_000_000, (60, 70, 80, 90) if SOAK else (60, 70)),
        (b"<!doctype html>" + b"<p>word " * 100_000, (50, 60, 80, 200) if SOAK else (50, 60)),
    ],
    ids=["text", "html"],
)
def test_lack_of_memory_is_not_reported_as_damage(data, sizes):
    results = outcomes(data, sizes)
    assert set(results.values()) <= {"read", "PARSE_MEMORY"}, results


@pytest.mark.parametrize("ending", ["docx", "xlsx", "pdf"])
def test_lack_of_memory_for_office_file_is_not_reported_as_damage(ending):
    results = outcomes(SOUND[ending], (25, 30, 33, 36, 40, 45, 50, 60, 80) if SOAK else (30, 38, 45))
    assert set(results.values()) <= {"read", "PARSE_MEMORY"}, results


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, "PARSE_MEMORY"), (signal.SIGSEGV, "DAMAGED")])
def test_crashed_worker_fails_only_its_own_request(sent, code):
    async def go():
        reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
        (child,) = await started()
        os.kill(child, sent)
        with pytest.raises(Unreadable) as caught:
            await reading
        return code_of(caught.value)

    assert asyncio.run(go()) == code


def test_crashed_worker_does_not_affect_other_workers():
    files = [pdf("The lease ends."), word("The lease ends."), b"The lease ends."] * 2

    async def go():
        doomed = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
        (child,) = await started()
        others = [asyncio.create_task(parse(data, "a.txt")) for data in files]
        os.kill(child, signal.SIGKILL)
        read_ones = await asyncio.gather(*others)
        assert isinstance((await asyncio.gather(doomed, return_exceptions=True))[0], Unreadable)
        return [parsed.parts[0].text for parsed in read_ones]

    assert asyncio.run(go()) == ["The lease ends."] * len(files)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has oom_score_adj")
def test_oom_killer_prefers_worker_to_server():
    async def go():
        reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx", Limits(seconds=20)))
        [reader] = await started()
        score = Path(f"/proc/{reader}/oom_score_adj")
        while score.read_text(encoding="ascii").strip() != "1000":
            assert not reading.done()
            await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    asyncio.run(go())


def test_cancellation_kills_worker():
    async def go():
        reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
        await started()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return readers()

    assert asyncio.run(go()) == set()


def test_cancellation_leaves_no_process():
    async def go():
        before = children()
        for wait in (0, 0.001, 0.003, 0.01, 0.03, 0.1):
            reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
            await asyncio.sleep(wait)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert children() == before, f"after {wait} s"
        assert (await parse(b"next", "a.txt")).parts[0].text == "next"

    asyncio.run(go())


def test_number_of_workers_is_limited_and_waiting_cancellable():
    async def go():
        busy = [asyncio.create_task(parse(hostile_files.slow(), "a.docx")) for _ in range(SLOTS)]
        await started(SLOTS)
        waiting = [asyncio.create_task(parse(b"waits", "a.txt")) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert len(readers()) == SLOTS
        waiting[0].cancel()
        await asyncio.sleep(0)
        assert waiting[0].cancelled() or waiting[0].cancelling()
        for task in busy:
            task.cancel()
        ended = await asyncio.gather(*busy, *waiting, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in ended[: SLOTS + 1])
        return [parsed.parts[0].text for parsed in ended[SLOTS + 1 :]]

    assert asyncio.run(go()) == ["waits", "waits"]


def test_several_event_loops_can_parse_files():
    async def go():
        return await asyncio.gather(*(parse(b"word", "a.txt") for _ in range(SLOTS + 2)))

    for _ in range(2):
        assert len(asyncio.run(go())) == SLOTS + 2


def test_worker_inherits_no_environment_or_open_file(monkeypatch, tmp_path):
    monkeypatch.setenv("VADEMECUM_TEST_SECRET", "never-tell")

    async def go():
        with (tmp_path / "open-in-the-server").open("w"):
            reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
            (child,) = await started()
            await asyncio.sleep(0.5)
            environ = Path(f"/proc/{child}/environ").read_bytes()
            open_files = [str(fd.readlink()) for fd in Path(f"/proc/{child}/fd").iterdir()]
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            return environ, open_files

    environ, open_files = asyncio.run(go())
    assert b"never-tell" not in environ
    assert not [name for name in open_files if str(tmp_path) in name]


def test_worker_cannot_write_files():
    async def limits():
        reading = asyncio.create_task(parse(hostile_files.slow(), "a.docx"))
        (child,) = await started()
        for _ in range(200):
            lines = Path(f"/proc/{child}/limits").read_text().splitlines()
            size = next(line for line in lines if line.startswith("Max file size")).split()[3:5]
            if size == ["0", "0"]:
                break
            await asyncio.sleep(0.05)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        return size

    assert asyncio.run(limits()) == ["0", "0"]


def test_file_name_is_not_used_as_path(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("never-tell")
    for name in (
        str(secret),
        f"../../../..{secret}",
        "a\0b.txt",
        "x" * 10_000,
        "\udce4.txt".encode("utf-8", "replace").decode(),
    ):
        assert read_in_new_process(b"only this", name).parts[0].text == "only this"


def test_worker_is_not_a_fork_of_the_server():
    # At-fork hooks of libraries, such as LanceDB's, may hang, so the worker must not be a fork.
    program = """
import os, sys, tempfile
sys.path[:0] = sys.argv[1:]
import uvloop
os.register_at_fork(before=lambda: print("forked"))
from vademecum.engines.files.subprocess_runner import parse
file = tempfile.TemporaryFile()
file.write(b"The lease ends.")
file.flush()
print(uvloop.run(parse(file.fileno(), "a.txt")).parts[0].text)
"""
    home = str(Path(vademecum.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", program, home], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("The lease ends.\n", "")


@pytest.mark.parametrize(
    "name, needed",
    [("txt", set()), ("xlsx", {"openpyxl"}), ("pptx", set()), ("docx", set()), ("pdf", {"pypdfium2"})],
)
def test_worker_imports_only_the_library_of_its_file_type(name, needed):
    program = """
import sys
sys.path[:0] = sys.argv[2:]
from vademecum.engines.files.result import Limits
from vademecum.engines.files.worker import Task, parse_file
parse_file(Task(sys.argv[1], Limits(), sys.stdin.buffer.read()))
print(*sys.modules)
"""
    home = str(Path(vademecum.__file__).parents[1])
    data = SOUND.get(name, b"The lease ends in May.")
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, f"file.{name}", home],
        input=data,
        capture_output=True,
        check=True,
    )
    loaded = set(done.stdout.decode().split())
    assert loaded & {"openpyxl", "pptx", "docx", "pypdfium2", "charset_normalizer"} == needed
    assert not loaded & {"asyncio", "vademecum.engines.files.subprocess_runner"}
