"""Configure pytest: run tests marked `soak` only if SOAK is set, and show compared values in helper modules too."""

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

# Idle threads of numpy busy-wait on CPU cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Prevent tests from using the models in this machine's cache unless they name the model folder.
os.environ["XDG_CACHE_HOME"] = os.devnull

# Prevent tests from downloading a model with Maven unless they name the Maven command.
os.environ["VADEMECUM_MVN"] = ""

# Load the system certificates only once. Otherwise each client would load them, which takes as long as a server start.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]

# Set no deadline per example, because parallel tests can slow any example down.
settings.register_profile("shared machine", deadline=None, max_examples=100 if os.environ.get("SOAK") else 40)
settings.load_profile("shared machine")

# Omit colors and local variables from logged errors: formatting the variables takes a tenth of a second per error.
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


gc.disable()  # during test collection, which creates many objects and almost no garbage


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # exclude the thousands of tests and imported modules from later garbage collections


def pytest_sessionfinish() -> None:
    gc.unfreeze()
