"""`vademecum serve`: run the server."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import structlog
import uvicorn

from vademecum import __version__
from vademecum.cli.data_lock import is_data_folder, wait_for_lock
from vademecum.cli.options import data_option, settings_for_new_folder
from vademecum.cli.serve import tls
from vademecum.errors import BadRequest, Broken, Busy, VademecumError, lacks_room
from vademecum.model.schema.constants import OWNER
from vademecum.services.accounts import local_auth
from vademecum.settings import Settings

if TYPE_CHECKING:
    from litestar import Litestar

    from vademecum.services.runtime.composition import Services

STOP_S = 8  # number of seconds that running requests may take to finish when the server stops
PUBLISH_RETRY_S = 5.0  # interval of attempts to write `server.json` while the disk is full
EXIT_S = 15.0  # maximum time from the signal to stop until the end of the process, even if the shutdown hangs
LISTEN_FDS = "VADEMECUM_LISTEN_FDS"  # lists the sockets that a restart passes on
BACKLOG = 2048
# `localhost` may resolve to an IPv6 address that the machine does not support. These errors are then ignored, because
# the IPv4 address suffices.
UNSUPPORTED_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# Idle connections are kept longer than clients and proxies keep them (nginx: 60 s). Otherwise the server might close a
# connection while the next request is on its way.
IDLE_S = 75
# Number of new objects before a garbage collection; high, because a push creates thousands of objects without cycles.
GC_THRESHOLD = 50_000
# Switch interval of the GIL: a write waits this long after each SQL statement if another thread is computing.
SWITCH_S = 0.0005
_log = structlog.get_logger("vademecum.serve")
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how commands reach a server that listens on all addresses


def describe_server(settings: Settings, url: str, address: str, link: str | None) -> Iterator[str]:
    """Yield the lines to print when the server listens on `address`."""
    everywhere = " (and all addresses of this machine)" if address in LOOPBACK else ""
    yield f"Vademecum listens on {url}{everywhere}"
    yield f"Data: {settings.data}"
    assistant = settings.assistant_model if settings.assistant_url else ""
    yield f"Assistant: {assistant or 'off, answers are quotations (VADEMECUM_ASSISTANT_URL)'}"
    if not ipaddress.ip_address(address).is_loopback and not (settings.origin or url).startswith("https:"):
        yield (
            "Warning: connections are not encrypted (no TLS), so others in the network can read passwords and documents. "
            "Use --tls-certificate or an HTTPS proxy."
        )
    if settings.origin.startswith("https:") and not (url.startswith("https:") or settings.trusted_proxies):
        yield (
            "Warning: no proxy is trusted, so all clients of a proxy share one rate limit. Name the proxy's address with "
            "--trusted-proxies."
        )
    if link is not None:
        yield f"Sign in as {OWNER} (administrator) with this one-time link, within 15 minutes: {settings.origin or url}{link}"


def _url(is_ssl: bool, host: str, port: int) -> str:
    return f"{'https' if is_ssl else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _own_address(host: str) -> str:
    """Return the address by which other machines reach this one.

    `connect` only looks up the route and sends no packet.
    """
    family, remote = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((remote, 9))
        except OSError:  # no network
            return LOOPBACK[host]
        return str(probe.getsockname()[0])


class Server(uvicorn.Server):
    """A uvicorn server that prints its address when it has started.

    When it stops, it closes the event streams first, because uvicorn would wait for their end.
    """

    def __init__(self, config: uvicorn.Config, app: Litestar, settings: Settings, warning: str) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings
        self._warning = warning
        self._fenced: set[str] = set()  # ids of the accounts that were fenced when the server started
        self._sockets: list[socket.socket] = []
        self._publishing: asyncio.Task[None] | None = None
        self._terminals = [number for number in (1, 2) if os.isatty(number)]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            with _hide_traceback(lambda: hasattr(self._app.state, "startup_error")):
                await super().startup(sockets)
        except SystemExit:
            if hasattr(self._app.state, "startup_error"):
                click.echo(f"Error: {self._app.state.startup_error}", err=True)
            raise
        if self.started:
            assert sockets
            self._sockets = sockets
            try:
                await self._announce(*sockets[0].getsockname()[:2])
            except VademecumError:  # shut down regularly; the command prints the error
                await self.shutdown(sockets)
                raise

    async def _announce(self, address: str, port: int) -> None:
        """Publish the server's address for commands, and print it."""
        services: Services = self._app.state.services
        host = self._settings.host
        local_host = LOOPBACK.get(host, host)
        url = _url(self.config.is_ssl, _own_address(host) if host in LOOPBACK else host, port)
        server_info = local_auth.ServerInfo(
            _url(self.config.is_ssl, local_host, port),
            os.getpid(),
            services.local_secret,
            self._settings.origin or url,
            __version__,
        )
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        sys.setswitchinterval(SWITCH_S)
        self._publish(server_info)
        self._fenced = set(services.users.fenced())
        services.instance.end = self._end_or_restart
        try:
            link = await services.account_service.ensure_owner()
        except Busy:  # the disk is full: start without a link, unless there is no account yet
            if not services.accounts.accounts:
                raise
            link = None
        lines = [*describe_server(self._settings, url, address, link), *filter(None, [self._warning])]
        with suppress(OSError):  # standard error may be closed
            click.echo("\n".join(lines), err=True)

    def _publish(self, server_info: local_auth.ServerInfo) -> None:
        """Write `server.json`; on a full disk, retry until there is space."""
        try:
            local_auth.publish(self._settings.data, server_info)
        except Broken as error:
            if not lacks_room(error):
                raise
            _log.error("server.json not written, commands cannot find the server", detail=error.message)
            self._publishing = asyncio.create_task(self._publish_later(server_info))

    async def _publish_later(self, server_info: local_auth.ServerInfo) -> None:
        while True:
            await asyncio.sleep(PUBLISH_RETRY_S)
            with suppress(Broken):
                local_auth.publish(self._settings.data, server_info)
                return

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
        local_auth.path(self._settings.data).unlink(missing_ok=True)
        await super().shutdown(sockets)
        gc.unfreeze()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals as uvicorn does, but do not raise them again, because a requested stop is not a failure."""
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN  # keep `nohup` working
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_or_restart(self, reason: str) -> None:
        """Replace this process with a new one, which is the only way to stop a stuck thread.

        Fences keep the new process from opening the files in which statements are stuck. If no account has been fenced
        since the start, the new process would get stuck again, so this process ends without a restart.
        """
        from vademecum.engines.duckdb.instance import end_process  # not slow: the app has imported it already

        services: Services = self._app.state.services
        if self.should_exit or set(services.users.fenced()) <= self._fenced:
            end_process(reason)
        _log.critical("the server restarts", reason=reason)
        local_auth.path(self._settings.data).unlink(missing_ok=True)
        services.users.stop_recovery()
        _restart_process([one.fileno() for one in self._sockets])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGHUP:
            _detach_terminal(self._terminals)
        if not self.should_exit:
            _exit_after(EXIT_S)
        if hasattr(self._app.state, "services"):
            self._app.state.services.hub.close()
            self._app.state.services.answers.stop()
        super().handle_exit(sig, frame)


def _restart_process(listening_fds: list[int]) -> None:
    """Restart the command within this process (exec).

    During the restart, new clients wait in the backlog of the sockets.
    """
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - of numbers
        with suppress(OSError):  # the listing includes its own descriptor, which is closed by now
            os.set_inheritable(int(name), int(name) <= 2 or int(name) in listening_fds)
    os.environ[LISTEN_FDS] = ",".join(map(str, listening_fds))
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


def _inherited() -> list[socket.socket]:
    """Return the sockets that `_restart_process` passed on."""
    passed = os.environ.pop(LISTEN_FDS, "")
    return [socket.socket(fileno=int(number)) for number in passed.split(",") if number]


def _exit_after(seconds: float) -> None:
    """End the process if it is still running after `seconds`. Nothing is lost: acknowledged commits are on the disk."""

    def exit_process() -> None:
        _log.critical("shutdown hangs, exiting", after_s=seconds)
        os._exit(1)

    timer = threading.Timer(seconds, exit_process)
    timer.daemon = True
    timer.start()


@contextmanager
def _hide_traceback(has_message: Callable[[], bool]) -> Iterator[None]:
    """Suppress uvicorn's traceback of a failed start if `has_message()`, because that message is printed instead."""
    log = logging.getLogger("uvicorn.error")

    def keep(_: logging.LogRecord) -> bool:
        return not has_message()

    log.addFilter(keep)
    try:
        yield
    finally:
        log.removeFilter(keep)


def _detach_terminal(descriptors: list[int]) -> None:
    """Redirect output to /dev/null, because writing to a closed terminal would fail during the shutdown."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for number in descriptors:
        os.dup2(devnull, number)
    os.close(devnull)


def open_sockets(settings: Settings) -> list[socket.socket]:
    """Listen on the configured address before the server starts, so that a start fails early if the port is in use.

    Clients that connect before the server is ready wait. Raises BadRequest.
    """
    host, port = settings.host, settings.port
    sockets: list[socket.socket] = []
    unsupported: OSError | None = None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                sockets.append(_bind(socket.socket(family, kind, protocol), (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in UNSUPPORTED_ADDRESS:
                    raise
                unsupported = error
                continue
            port = sockets[-1].getsockname()[1]  # a port chosen by the system is used for all addresses
        if unsupported is not None and not sockets:
            raise unsupported
    except OSError as error:
        for opened in sockets:
            opened.close()
        if error.errno == errno.EADDRINUSE:
            raise BadRequest(
                f"Port {port} is in use. Stop the program that uses it, or choose another --port."
            ) from error
        raise BadRequest(
            f"The server cannot listen on {host}, port {port}: {error.strerror}. Choose another --host or --port."
        ) from error
    return sockets


def _bind(new: socket.socket, address: tuple[Any, ...]) -> socket.socket:
    try:
        new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if new.family == socket.AF_INET6:  # accept no IPv4 connections here: IPv4 has its own socket
            new.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        new.bind(address)
        new.listen(BACKLOG)
    except OSError:
        new.close()
        raise
    return new


def choose_protocol() -> Any:
    """Return the protocol with bounded heads or, if httptools is missing, uvicorn's h11, which bounds heads itself."""
    try:
        from vademecum.cli.serve.bounded_http import BoundedProtocol
    except ImportError:
        return "h11"
    return BoundedProtocol


def _port(context: click.Context, option: click.Parameter, port: int | None) -> int | None:
    if port is not None and not 0 <= port <= 65535:
        raise BadRequest("--port must be 0 to 65535.")
    return port


@click.command()
@data_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=int,
    envvar="VADEMECUM_PORT",
    callback=_port,
    help="Port to listen on; 0 chooses a free one.  [default: 8787]",
)
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    help="Folder of models.  [default: one for the machine, ~/.cache/vademecum/models]",
)
@click.option(
    "--tls-certificate",
    type=click.Path(path_type=Path),
    help="PEM file of the certificate, to serve HTTPS (phones require it).",
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM file of the private key.")
@click.option("--trusted-proxies", help="Addresses of proxies whose X-Forwarded-* headers the server trusts.")
@click.option("--origin", help="Public URL behind a proxy, such as https://docs.example.org.")
@click.option(
    "--erase-delay-s", type=float, help="Seconds from a delete to its erasure from the disk.  [default: 60]"
)
def serve(data: Path, **flags: object) -> None:
    """Serve the app and its API.

    In a new data folder the command creates a local owner account and prints a one-time sign-in link. Every setting is
    also an environment variable, such as VADEMECUM_PORT, VADEMECUM_TIERS (JSON) or VADEMECUM_RATES (JSON).

    \b
    Example: vademecum serve --port 8080
    """
    settings = settings_for_new_folder(data, **flags)
    warning = tls.check(settings)
    # Lock an existing data folder before opening the port. If another server holds the folder and the port, the error
    # then names the folder.
    sockets = _inherited() or ([] if is_data_folder(settings.data) else open_sockets(settings))
    from vademecum.app import create_app  # deferred: the import is slow
    from vademecum.services.runtime import logging as logs

    logs.configure()
    with wait_for_lock(settings.data) as is_locked:
        if not is_locked:
            raise Broken(f"Another process uses {settings.data}. Stop it, or choose another --data.")
        local_auth.withdraw(settings.data)
        sockets = sockets or open_sockets(settings)
        app = create_app(settings)
        config = uvicorn.Config(
            app,
            http=choose_protocol(),
            log_config=None,
            access_log=False,
            lifespan="on",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies or None,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=STOP_S,
            server_header=False,
        )
        Server(config, app, settings, warning).run(sockets)
        from vademecum.services.agents.folder_check import is_checking

        is_stuck = hasattr(app.state, "services") and app.state.services.instance.stuck_count()
        if is_stuck or is_checking():
            os._exit(0)  # otherwise the interpreter would wait for the stuck threads
