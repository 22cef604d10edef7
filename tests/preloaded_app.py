"""Import and use the program once, so that processes forked by `forked_command` need not do so."""

import gc
import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

from litestar import Litestar

import forked_command  # noqa: F401 - contains the function that the forked processes run
import vademecum.cli
from vademecum import app
from vademecum.cli.serve.serve import GC_THRESHOLD
from vademecum.model.schema.collections import Registry
from vademecum.settings import Settings

# Modules that servers and commands import only when they need them.
LAZY_MODULES = ("anyio._backends._asyncio", "onnxruntime", "uvicorn.lifespan.on", "uvicorn.loops.uvloop",
         "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "vademecum.engines.lance.vector_index",
         "vademecum.engines.lance.chunk_table", "vademecum.engines.onnx.embedder", "vademecum.services.runtime.logging")  # fmt: skip

for command in pkgutil.walk_packages(vademecum.cli.__path__, "vademecum.cli."):
    importlib.import_module(command.name)
for module in LAZY_MODULES:
    importlib.import_module(module)
sys.modules["vademecum.engines.lance.chunk_table"]._lancedb()
# LanceDB warns about forks, but this process only imports it. Each forked process starts its own LanceDB threads.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
create_app, DEFAULTS = app.create_app, Settings(data=Path("/nowhere"))
PREPARED_APP = create_app(DEFAULTS)


def reuse_routes(settings: Settings, *, run_llm_jobs: bool = True) -> Litestar:
    """Return the prepared app with these settings. Its routes are reused, because only `body_max` affects them."""
    if settings.body_max != DEFAULTS.body_max:
        return create_app(settings, run_llm_jobs=run_llm_jobs)
    PREPARED_APP._lifespan_managers = [
        lambda made: app.serving(made, settings, Registry(), run_llm_jobs=run_llm_jobs)
    ]
    return PREPARED_APP


app.create_app = reuse_routes  # type: ignore[assignment]
# Freeze the objects: a garbage collection in a forked process would copy the memory that it shares with this one.
gc.collect()
gc.freeze()
gc.set_threshold(GC_THRESHOLD, 20, 20)
