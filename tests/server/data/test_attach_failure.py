"""Files of records that DuckDB cannot attach. The server fences the account only if the file is damaged."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from property.rows import fact
from server.in_process_server import Person, check_problem, run, serve
from unprivileged_user import without_root_access
from vademecum.engines.duckdb import damage
from vademecum.model.records.paths import user_folder

PULL = "/v1/sync/facts/0/pull?lwt=0&limit=10"


def records(data: Path, person: Person) -> Path:
    return user_folder(data, person.id) / "records.duckdb"


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "100 bytes": lambda content: content[:100],
    "headers only": lambda content: content[: 3 * 4096],
    "text": lambda content: b"These are not records.\n" * 1000,
    "another database": lambda content: b"SQLite format 3\0" + content[16:],
    "no first header": lambda content: bytes(4096) + content[4096:],
    "no other headers": lambda content: content[:4096] + bytes(2 * 4096) + content[3 * 4096 :],
    "one bit": lambda content: flipped(content, 4096 + 20),
}


@pytest.mark.parametrize("damaged", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_that_cannot_be_attached_fences_its_account(
    tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path / "data") as h:
            ada, bob = await h.person(), await h.person()
            for person in (ada, bob):
                await person.add("facts", fact("f1"))
            await h.services.backup.create(tmp_path / "saved")
            path = records(tmp_path / "data", ada)
            async with h.services.users.detached(ada.id):
                path.write_bytes(damaged(path.read_bytes()))
            account = h.services.accounts.accounts[ada.id]
            for _ in range(2):
                detail = check_problem(await ada.call("GET", PULL), 503, "FENCED")["detail"]
            assert str(path) in detail and f"vademecum restore BACKUP --user {account.email}" in detail
            assert (await h.services.account_service.profile(account)).problem == detail, (
                "the profile, which doctor reads, must have the same explanation"
            )
            assert (await bob.call("GET", "/ready")).json()["fenced"] == 1
            assert len(await bob.live("facts")) == 1
            await h.services.restore.restore_account(tmp_path / "saved", account.email)
            assert set(await ada.live("facts")) == {"f1"}
            assert h.services.users.fences.fenced() == {}

    run(scenario)


@contextmanager
def no_more_files() -> Iterator[None]:
    """Make opening files fail, as for a process that has too many open files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextmanager
def held_by_another_process(path: Path) -> Iterator[None]:
    program = f"import duckdb, time; c = duckdb.connect({str(path)!r}); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
        try:
            yield
        finally:
            holder.kill()


@contextmanager
def shut(path: Path) -> Iterator[None]:
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(0o600)


@contextmanager
def folder_in_its_place(path: Path) -> Iterator[None]:
    aside = path.rename(path.with_name("aside"))
    path.mkdir()
    try:
        yield
    finally:
        path.rmdir()
        aside.rename(path)


@pytest.mark.parametrize(
    ("trouble", "status", "code", "said"),
    [
        (lambda path: no_more_files(), 503, "BUSY", "Try again"),
        (held_by_another_process, 500, "BROKEN", "another process"),
        (shut, 500, "BROKEN", "Permission denied"),
        (folder_in_its_place, 500, "BROKEN", "Is a directory"),
    ],
    ids=["no more files", "held by another process", "no permission", "a folder in its place"],
)
def test_account_with_intact_file_is_not_fenced_after_attach_error(
    tmp_path: Path, trouble: Callable[[Path], contextmanager[None]], status: int, code: str, said: str
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            async with h.services.users.detached(ada.id):
                pass
            with trouble(records(tmp_path, ada)):
                assert said in check_problem(await ada.call("GET", PULL), status, code)["detail"]
            assert h.services.users.fences.fenced() == {}
            assert set(await ada.live("facts")) == {"f1"}

    with without_root_access():
        run(scenario)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM,
                                    errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM])  # fmt: skip
def test_operating_system_error_does_not_count_as_damage(number: int) -> None:
    said = f'IO Error: Cannot open file "records.duckdb": {os.strerror(number)}'
    assert damage.reason(duckdb.IOException(said)) is None


def test_input_output_error_counts_as_damage() -> None:
    said = f'IO Error: Could not read from file "records.duckdb": {os.strerror(errno.EIO)}'
    assert damage.reason(duckdb.IOException(said)) is not None
