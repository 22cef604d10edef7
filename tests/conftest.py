"""Configure pytest: run tests marked `soak` only if SOAK is set, and print a line for each sweep after the run.

Compared values are shown in helper modules, too.
"""

import asyncio
import gc
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from time import monotonic

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


@pytest.fixture
def sweep_case(
    record_property: Callable[[str, object], None],
) -> Callable[[str], AbstractContextManager[None]]:
    """Return a context manager that runs one case of the named sweep."""

    @contextmanager
    def case(sweep: str) -> Iterator[None]:
        began, failed = monotonic(), True
        try:
            yield
            failed = False
        finally:
            record_property("sweep", (sweep, monotonic() - began, failed))

    return case


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the cases, the failures and the slowest case of each sweep."""
    sweeps: dict[str, list[tuple[float, bool]]] = {}
    for report in [report for reports in terminalreporter.stats.values() for report in reports]:
        if getattr(report, "when", "") != "call":
            continue
        for name, value in report.user_properties:
            if name == "sweep":
                sweep, seconds, failed = value
                sweeps.setdefault(sweep, []).append((seconds, failed))
    for sweep, cases in sorted(sweeps.items()):
        failures, slowest = sum(failed for _, failed in cases), max(seconds for seconds, _ in cases)
        terminalreporter.write_line(
            f"sweep of {sweep}: {len(cases)} cases, {failures} failures, slowest {slowest:.2f} s"
        )


gc.disable()  # during test collection, which creates many objects and almost no garbage


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # exclude the thousands of tests and imported modules from later garbage collections


def pytest_sessionfinish() -> None:
    gc.unfreeze()
