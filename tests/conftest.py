"""Tests marked `soak` run only when the environment has SOAK. A failed assertion of a helper says what it saw."""

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

# Threads of numpy's, in tests and in what they start: they spin while they wait, on cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The models of this machine are found by no test that does not name them.
os.environ["XDG_CACHE_HOME"] = os.devnull

# No test fetches a model with Maven unless it names a command.
os.environ["VADEMECUM_MVN"] = ""

# The certificates that a client believes are read from their file for each: as much as a small server costs.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]

# How long an example of a property takes is the machine's doing: other tests run beside it.
settings.register_profile("beside others", deadline=None, max_examples=100 if os.environ.get("SOAK") else 40)
settings.load_profile("beside others")

# What a test does not set up is logged for people. Drawn with colours and variables, an error takes a tenth of a second.
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
    left_out = [item for item in items if item.get_closest_marker("soak")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


gc.disable()  # what is collected stays


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # thousands of tests and all they have imported: no look for cycles need go through them


def pytest_sessionfinish() -> None:
    gc.unfreeze()
