"""What the processes of `forked` are forked from: the program, imported and used once, so that none of them does it."""

import gc
import importlib
import pkgutil
from pathlib import Path

import lance_namespace  # noqa: F401 - most of what the index imports at the first search

import forked  # noqa: F401 - where their work is
import vademecum.cli
from vademecum.app import create_app
from vademecum.cli.serve import GC_EVERY
from vademecum.settings import Settings

for command in pkgutil.iter_modules(vademecum.cli.__path__):
    importlib.import_module(f"vademecum.cli.{command.name}")
create_app(Settings(data=Path("/nowhere")))
# A look for cycles through what is shared would copy it into each of them.
gc.collect()
gc.freeze()
gc.set_threshold(GC_EVERY, 20, 20)
