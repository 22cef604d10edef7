"""Open the stores of all users in a data folder, after a clean stop or a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vademecum.engines.duckdb import migrations
from vademecum.engines.duckdb.fence import Fences
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.paths import RECORDS_FILE
from vademecum.engines.duckdb.user_database import DatabaseFactory
from vademecum.engines.duckdb.user_store import remove_leftovers
from vademecum.engines.duckdb.user_stores import DuckDBUserStores
from vademecum.model.records.paths import user_folder
from vademecum.model.records.store_interface import AccountStore, StoreHooks
from vademecum.model.schema.collections import Registry


def template_path(data: Path, loaded: tuple[migrations.Migration, ...]) -> Path:
    """Return the path of the empty records file with these migrations, from which new accounts' files are copied."""
    return data / f".template-{loaded[-1].checksum[:12]}.duckdb"


def open_user_stores(
    data: Path,
    instance: Instance,
    migrations_folder: Path,
    registry: Registry,
    accounts: AccountStore,
    clock: Callable[[], str],
    hooks: StoreHooks,
    attached_max: int = 256,
    attached_rows_max: int = 1_000_000,
) -> DuckDBUserStores:
    """Return the stores of all users.

    Unused files stay attached up to `attached_max` files and a total of `attached_rows_max` rows.
    """
    loaded = migrations.load(migrations_folder)
    factory = DatabaseFactory(instance, tuple(registry), loaded, template_path(data, loaded))
    factory.prepare_template()
    fences = Fences(data, lambda user_id: user_folder(data, user_id) / RECORDS_FILE, accounts.name_of)
    fences.on_fence = hooks.on_fence
    bounds = attached_max, attached_rows_max
    stores = DuckDBUserStores(data, factory, registry, accounts.exists, clock, hooks, fences, *bounds)
    remove_leftovers(data)
    return stores
