"""Open each records engine on a folder. The tests in this folder run with every records engine.

To add an engine, add to ENGINES a function that yields its `UserStores` and one that plants version conflicts. The engine
must keep its state below `folder`, or in places named after it, so that it finds its state when opened again.
"""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import duckdb

from vademecum.engines.duckdb import segments
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.opening import open_user_stores
from vademecum.model.schema.collections import Registry
from vademecum.services.runtime.composition import migrations_folder

NOW = "2026-01-01T00:00:00.000Z"


@asynccontextmanager
async def open_duckdb(folder, hooks):
    """Open the DuckDB engine."""
    instance, accounts = Instance(), SimpleNamespace(exists=lambda user_id: True, name_of=str)
    instance.cursor().execute(
        "SET fsync_mode = 'NONE'"
    )  # faster, and no test in this folder simulates a power failure
    folder.mkdir(parents=True, exist_ok=True)
    migrations = migrations_folder()
    stores = open_user_stores(folder, instance, migrations, Registry(), accounts, lambda: NOW, hooks)
    try:
        yield stores
    finally:
        await stores.close()
        instance.close()


def plant_duckdb_conflicts(monkeypatch, count):
    """Make the next `count` commits of DuckDB fail with a version conflict."""
    write_commit, left = segments.write_commit, [count]

    def conflicting(*arguments):
        if left[0]:
            left[0] -= 1
            raise duckdb.TransactionException("TransactionContext Error: Conflict on update!")
        return write_commit(*arguments)

    monkeypatch.setattr(segments, "write_commit", conflicting)


# Maps the name of each engine to the functions that open it and plant version conflicts in it.
ENGINES = {"duckdb": (open_duckdb, plant_duckdb_conflicts)}
