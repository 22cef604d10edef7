"""Verify records files in a separate process, which is killed if DuckDB hangs on a damaged file.

`python -m vademecum.engines.duckdb.verification` reads paths from stdin and answers each with the problem or null. Paths
and answers are JSON, one per line.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import msgspec

from vademecum.engines.duckdb.checksums import verify
from vademecum.engines.duckdb.cursor import Deadlines
from vademecum.engines.duckdb.instance import Connection, connect
from vademecum.engines.duckdb.segments import COLUMNS, decode_rows
from vademecum.model.sync.transaction import WAITING

PROBLEM_MAX = 500  # maximum length of a problem's description in characters


class Verifier:
    """A process that verifies files one after another and is restarted if it has ended. Use with `async with`."""

    def __init__(self, deadlines: Deadlines | None = None) -> None:
        self._deadlines = deadlines or Deadlines()
        self._child: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Verifier:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def problem(self, path: Path) -> str | None:
        """Return a description of the damage in a file that is not open, or None.

        Reads every segment and changes nothing.
        """
        log = path.with_name(f"{path.name}.wal")
        limit_s = self._deadlines.by_size(sum(one.stat().st_size for one in (path, log) if one.exists()))
        answer = b""
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._ask(path)
        except TimeoutError:
            return f"it could not be read within {limit_s:.0f} s"
        except ConnectionError:
            pass
        finally:
            if not answer:
                await self._end()
        problem: str | None = msgspec.json.decode(answer) if answer else "reading it ended the process"
        return problem

    async def _ask(self, path: Path) -> bytes:
        if self._child is None:
            pipe = asyncio.subprocess.PIPE
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
            )
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(msgspec.json.encode(str(path)) + b"\n")
        await child.stdin.drain()
        return await child.stdout.readline()

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


def verify_all(connection: Connection, alias: str) -> None:
    """Verify and decode every segment and waiting row of an attached file. Raises DamagedSegment."""
    has_checksums = connection.execute(
        "SELECT 1 FROM duckdb_columns() WHERE database_name = ? AND table_name = 'packs' AND column_name = 'checksum'",
        [alias],
    ).fetchall()
    columns = COLUMNS if has_checksums else COLUMNS.replace("checksum", "NULL")
    result = connection.execute(f"SELECT {columns} FROM {alias}.main.packs")
    while rows := result.fetchmany(64):
        for first, name, seqs, heads, bodies, stored_checksum in rows:
            verify(name, first, seqs, stored_checksum, heads=heads, bodies=bodies)
            decode_rows(name, first, seqs, heads, bodies)
    result = connection.execute(f"SELECT id, head, body FROM {alias}.main.waiting")
    while rows := result.fetchmany(64):
        for key, head, body in rows:
            decode_rows(key.partition("/")[0], WAITING, f"[{WAITING}]", f"[{head}]", f"[{body}]")


def _problem(path: str) -> str | None:
    quoted = path.replace("'", "''")
    try:
        with connect(":memory:") as connection:
            connection.execute(f"ATTACH '{quoted}' AS source (TYPE duckdb, READ_ONLY)")
            verify_all(connection, "source")
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:PROBLEM_MAX]
    return None


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(_problem(msgspec.json.decode(line))) + b"\n")
        sys.stdout.buffer.flush()
