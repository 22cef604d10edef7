"""Run the command `vademecum` with statements that hang and ignore interrupts, or with a DuckDB that cannot start again.

A file in the folder HANGING chooses the next statement to hang: the id of an account (a read of its records), `detach-`
and the id (the detach of its file), `accounts` (the check of the accounts file for /ready) or `start` (the first read of
the accounts file). The statement removes the file and then waits until the folder contains the file `release`. The file
`slow-start` chooses the same statement as `start`, but it obeys interrupts. The file `restart` makes the next start of
DuckDB fail.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import duckdb

from vademecum.cli.main import main
from vademecum.engines.duckdb import cursor, instance
from vademecum.engines.duckdb.account_store import DuckDBAccountStore
from vademecum.engines.duckdb.user_store import DuckDBUserStore

HANGING = Path(os.environ["HANGING"])
read, ping, load = DuckDBUserStore._read, DuckDBAccountStore._ping, DuckDBAccountStore._load
connect, detach = instance.connect, DuckDBUserStore.detach_safely
cursor.GRACE_S = 0.2


def is_chosen(name):
    try:
        (HANGING / name).unlink()
    except FileNotFoundError:
        return False
    return True


def hang(engine, name):
    """Wait in a Python function that DuckDB calls, which an interrupt cannot end."""

    def wait(number):
        while not (HANGING / "release").exists():
            time.sleep(0.02)
        return number

    engine._raw.create_function(f"hang_{name}", wait, ["BIGINT"], "BIGINT")
    return engine.execute(f"SELECT hang_{name}(1)").fetchall()


async def hanging_read(store, segments):
    if is_chosen(store.user_id):
        await store._run(lambda engine: hang(engine, store.alias))
    return await read(store, segments)


def hanging_detach(store):
    if is_chosen(f"detach-{store.user_id}"):
        with suppress(duckdb.InterruptException):  # a real DETACH is not interrupted
            hang(store._instance.cursor(), store.alias)
    return detach(store)


def hanging_ping(store, engine):
    if is_chosen("accounts"):
        hang(engine, "accounts")
    return ping(store, engine)


def hanging_load(store, engine, migrations):
    if is_chosen("start"):
        hang(engine, "start")
    if is_chosen("slow-start"):
        engine.execute("SELECT sum(range) FROM range(10000000000000)").fetchall()
    return load(store, engine, migrations)


def failing_connect(path):
    if is_chosen("restart"):
        raise MemoryError
    return connect(path)


instance.connect = failing_connect
DuckDBUserStore._read = hanging_read
DuckDBUserStore.detach_safely = hanging_detach
DuckDBAccountStore._ping = hanging_ping
DuckDBAccountStore._load = hanging_load

if __name__ == "__main__":
    main()
