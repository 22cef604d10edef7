"""Import the program and use it once, so that the processes that `forked_command` forks need not."""

import gc
import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

from litestar import Litestar

import forked_command  # noqa: F401 - where their work is
import vademecum.cli
from vademecum import app
from vademecum.cli.serve.serve import GC_THRESHOLD
from vademecum.model.schema.collections import Registry
from vademecum.settings import Settings

# What a server and a command import as late as they can.
LATER = ("anyio._backends._asyncio", "onnxruntime", "uvicorn.lifespan.on", "uvicorn.loops.uvloop",
         "uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto", "vademecum.engines.lance.vector_index",
         "vademecum.engines.lance.chunk_table", "vademecum.engines.onnx.embedder", "vademecum.services.runtime.logging")  # fmt: skip

for command in pkgutil.walk_packages(vademecum.cli.__path__, "vademecum.cli."):
    importlib.import_module(command.name)
for module in LATER:
    importlib.import_module(module)
sys.modules["vademecum.engines.lance.chunk_table"]._lancedb()
# Its own threads begin anew in each; here it has only been imported, and nothing is under way.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
create_app, AT_HAND = app.create_app, Settings(data=Path("/nowhere"))
ROUTES = create_app(AT_HAND)


def with_made_routes(settings: Settings, *, works: bool = True) -> Litestar:
    """The application as commands ask for it. Making the routes is most of what a command costs without a server; of the
    settings they hold how large a body may be."""
    if settings.body_max != AT_HAND.body_max:
        return create_app(settings, works=works)
    ROUTES._lifespan_managers = [lambda made: app.serving(made, settings, Registry(), works=works)]
    return ROUTES


app.create_app = with_made_routes  # type: ignore[assignment]
# A look for cycles through what is shared would copy it into each of them.
gc.collect()
gc.freeze()
gc.set_threshold(GC_THRESHOLD, 20, 20)
