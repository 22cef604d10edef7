"""Open each records engine on a folder. The suite in this folder holds for all of them.

To add an engine, add a function that yields its `DuckDBUserStores` to ENGINES. It must keep all of its state below `folder`, or
derive names from it, so that opening it twice continues where it stopped.
"""

from contextlib import asynccontextmanager

from vademecum.engines.duckdb import migrations
from vademecum.engines.duckdb.fence import Fences
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.user_database import DatabaseFactory
from vademecum.engines.duckdb.user_stores import DuckDBUserStores
from vademecum.model.records.paths import user_folder
from vademecum.model.schema.collections import Registry
from vademecum.services.runtime.composition import migrations_folder

NOW = "2026-01-01T00:00:00.000Z"


@asynccontextmanager
async def open_duckdb(folder, hooks):
    registry, instance = Registry(), Instance()
    instance.cursor().execute("SET fsync_mode = 'NONE'")  # no test here cuts the power
    loaded = migrations.load(migrations_folder())
    factory = DatabaseFactory(instance, tuple(registry), loaded, folder / ".template-test.duckdb")
    folder.mkdir(parents=True, exist_ok=True)
    factory.prepare_template()
    fences = Fences(folder, lambda user_id: user_folder(folder, user_id), str)
    stores = DuckDBUserStores(folder, factory, registry, lambda user_id: True, lambda: NOW, hooks, fences)
    try:
        yield stores
    finally:
        await stores.close()
        instance.close()


ENGINES = {"duckdb": open_duckdb}
