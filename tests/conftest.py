"""Configure pytest: tests marked `soak` run only with SOAK in the environment, and helpers show compared values."""

import asyncio
import gc
import inspect
import os
from functools import cache

import httpx
import pytest
import structlog
from hypothesis import settings
from structlog.dev import ConsoleRenderer, plain_traceback

pytest.register_assert_rewrite("cli", "faults", "property", "server")

# Waiting threads of numpy spin on cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests must not find the models of this machine unless they name them.
os.environ["XDG_CACHE_HOME"] = os.devnull

# No test fetches a model with Maven unless it names a command.
os.environ["VADEMECUM_MVN"] = ""

# Load the system certificates once, because each client would take as long for that as the start of a small server.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]

# No deadline for examples, because other tests run at the same time.
settings.register_profile("shared machine", deadline=None, max_examples=100 if os.environ.get("SOAK") else 40)
settings.load_profile("shared machine")

# Log without colors and local variables, which would take a tenth of a second per error.
plain = ConsoleRenderer(colors=False, exception_formatter=plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("SOAK"):
        return
    deselected = [item for item in items if item.get_closest_marker("soak")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


gc.disable()  # collected tests stay in memory anyway


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # exclude thousands of tests and their imports from garbage collection


def pytest_sessionfinish() -> None:
    gc.unfreeze()
