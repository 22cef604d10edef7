"""Provide the fixture `engine`, which runs each test of this folder once for every records engine."""

import asyncio

import pytest

from conformance.records.engines import ENGINES
from vademecum.model.records.store_interface import StoreHooks


class Engine:
    """One engine on one folder. Each `run` opens the engine, passes its stores to a scenario and closes it again."""

    def __init__(self, name, folder):
        self.hooks = StoreHooks()
        self._open_stores, self.plant_conflicts = ENGINES[name]
        self._folder = folder

    def run(self, scenario):
        """Run `scenario(stores)`. It finds what earlier calls of `run` stored, as after a restart."""

        async def opened():
            async with self._open_stores(self._folder, self.hooks) as stores:
                return await scenario(stores)

        return asyncio.run(opened())

    def run_for_ada(self, scenario):
        """Run `scenario(store)` with the store of one user."""

        async def with_store(stores):
            async with stores.open("ada") as store:
                return await scenario(store)

        return self.run(with_store)


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    return Engine(request.param, tmp_path / "data")
