"""`vademecum serve`: the server itself."""

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

    from vademecum.services.runtime.container import Services

STOP_S = 8  # for requests; then they are cut off
PUBLISH_EVERY_S = 5.0  # while the disk has no room for `server.json`
STOPPED_S = 15.0  # from the signal to the end of the process, whatever hangs
LISTEN_FDS = "VADEMECUM_LISTEN_FDS"  # sockets that a restarted process takes over from itself
BACKLOG = 2048
# Of `localhost`, where a machine has IPv6 by name alone: then the other address will do.
LACKING = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# Longer than clients and proxies keep a connection that is not used (nginx: 60 s): closed just when the next request is on
# its way, that one ends without an answer.
IDLE_S = 75
GC_EVERY = 50_000  # new objects between looks for cycles: a push makes thousands, none of them cyclic
# A write reacquires the GIL after each statement, and waits up to this long for a thread that computes.
SWITCH_S = 0.0005
_log = structlog.get_logger("vademecum.serve")
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where commands find a server that listens everywhere


def greeting(settings: Settings, url: str, address: str, link: str | None) -> Iterator[str]:
    """What a person must know of a server that has begun to listen on `address`."""
    everywhere = " (and all addresses of this machine)" if address in LOOPBACK else ""
    yield f"Vademecum listens on {url}{everywhere}"
    yield f"Data: {settings.data}"
    assistant = settings.assistant_model if settings.assistant_url else ""
    yield f"Assistant: {assistant or 'off, answers are quotations (VADEMECUM_ASSISTANT_URL)'}"
    if not ipaddress.ip_address(address).is_loopback and not (settings.origin or url).startswith("https:"):
        yield (
            "Warning: this is not encrypted (no TLS): who shares the network can read passwords and documents. "
            "Use --tls-certificate, or a proxy that speaks HTTPS."
        )
    if settings.origin.startswith("https:") and not (url.startswith("https:") or settings.trusted_proxies):
        yield (
            "Warning: no proxy is trusted, so everybody who comes through one counts as one caller, on this machine. "
            "Name its address by --trusted-proxies."
        )
    if link is not None:
        yield f"Sign in as {OWNER} (administrator), once, within 15 minutes: {settings.origin or url}{link}"


def _url(is_ssl: bool, host: str, port: int) -> str:
    return f"{'https' if is_ssl else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _own_address(host: str) -> str:
    """By which other machines reach this one. Nothing is sent: the system looks up its routes."""
    family, elsewhere = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((elsewhere, 9))
        except OSError:  # no network
            return LOOPBACK[host]
        return str(probe.getsockname()[0])


class Server(uvicorn.Server):
    """Says where it listens once it does, and closes the streams first when asked to stop: uvicorn waits for them."""

    def __init__(self, config: uvicorn.Config, app: Litestar, settings: Settings, warning: str) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings
        self._warning = warning
        self._fenced: set[str] = set()  # accounts, at the start
        self._sockets: list[socket.socket] = []
        self._publishing: asyncio.Task[None] | None = None
        self._terminals = [number for number in (1, 2) if os.isatty(number)]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            with _untold(lambda: hasattr(self._app.state, "refusal")):
                await super().startup(sockets)
        except SystemExit:
            if hasattr(self._app.state, "refusal"):
                click.echo(f"Error: {self._app.state.refusal}", err=True)
            raise
        if self.started:
            assert sockets
            self._sockets = sockets
            try:
                await self._open(*sockets[0].getsockname()[:2])
            except VademecumError:  # its words are the command's last; what was opened is closed in order
                await self.shutdown(sockets)
                raise

    async def _open(self, address: str, port: int) -> None:
        """Tell commands and a person where it listens."""
        from vademecum.services.accounts.accounts import ensure_owner  # with the app

        services: Services = self._app.state.services
        host = self._settings.host
        here = LOOPBACK.get(host, host)
        url = _url(self.config.is_ssl, _own_address(host) if host in LOOPBACK else host, port)
        door = local_auth.Door(
            _url(self.config.is_ssl, here, port),
            os.getpid(),
            services.local_secret,
            self._settings.origin or url,
            __version__,
        )
        gc.freeze()
        gc.set_threshold(GC_EVERY, 20, 20)
        sys.setswitchinterval(SWITCH_S)
        self._publish(door)
        self._fenced = set(services.users.fenced())
        services.instance.end = self._end_or_restart
        try:
            link = await ensure_owner(services)
        except Busy:  # a full disk prevents the first start only
            if not services.accounts.accounts:
                raise
            link = None
        said = [*greeting(self._settings, url, address, link), *filter(None, [self._warning])]
        with suppress(OSError):  # as the log
            click.echo("\n".join(said), err=True)  # at once or not at all

    def _publish(self, door: local_auth.Door) -> None:
        """Write `server.json`, on a full disk as soon as there is room."""
        try:
            local_auth.publish(self._settings.data, door)
        except Broken as error:
            if not lacks_room(error):
                raise
            _log.error("commands cannot find the server until the disk has room", detail=error.message)
            self._publishing = asyncio.create_task(self._publish_later(door))

    async def _publish_later(self, door: local_auth.Door) -> None:
        while True:
            await asyncio.sleep(PUBLISH_EVERY_S)
            with suppress(Broken):
                local_auth.publish(self._settings.data, door)
                return

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
        local_auth.path(self._settings.data).unlink(missing_ok=True)
        await super().shutdown(sockets)
        gc.unfreeze()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, which raises the signal again at the end: but who was asked to stop and stopped has not failed."""
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if number != signal.SIGHUP
            or signal.getsignal(number) != signal.SIG_IGN  # `nohup` wants it to go on
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_or_restart(self, reason: str) -> None:
        """Replace this process with a new one, which is the only way to stop a stuck thread. Fences keep it from meeting
        the same file again; without a new fence it would, so then the process ends for good."""
        from vademecum.engines.duckdb.instance import end_process  # with the app

        services: Services = self._app.state.services
        if self.should_exit or set(services.users.fenced()) <= self._fenced:
            end_process(reason)
        _log.critical("the server restarts", reason=reason)
        local_auth.path(self._settings.data).unlink(missing_ok=True)
        services.users.stop_recovery()
        _execute_again([one.fileno() for one in self._sockets])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGHUP:
            _leave_terminal(self._terminals)
        if not self.should_exit:
            _end_after(STOPPED_S)
        if hasattr(self._app.state, "services"):
            self._app.state.services.hub.close()
            self._app.state.services.answers.stop()
        super().handle_exit(sig, frame)


def _execute_again(listening_fds: list[int]) -> None:
    """Run the same command in this process. Clients that connect meanwhile wait in the sockets' backlog."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - of numbers
        with suppress(OSError):  # the one that the listing used
            os.set_inheritable(int(name), int(name) <= 2 or int(name) in listening_fds)
    os.environ[LISTEN_FDS] = ",".join(map(str, listening_fds))
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


def _inherited() -> list[socket.socket]:
    """Return the sockets that `_execute_again` passed on."""
    passed = os.environ.pop(LISTEN_FDS, "")
    return [socket.socket(fileno=int(number)) for number in passed.split(",") if number]


def _end_after(seconds: float) -> None:
    """End the process if it still runs then. Acknowledged commits are on the disk."""

    def end() -> None:
        _log.critical("the shutdown hangs: the server ends without it", after_s=seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


@contextmanager
def _untold(is_told: Callable[[], bool]) -> Iterator[None]:
    """Why it does not start is told in a sentence: the trace that uvicorn has of it tells nobody more."""
    log = logging.getLogger("uvicorn.error")

    def keep(_: logging.LogRecord) -> bool:
        return not is_told()

    log.addFilter(keep)
    try:
        yield
    finally:
        log.removeFilter(keep)


def _leave_terminal(descriptors: list[int]) -> None:
    """It is closed: a line of the log that is written to it would fail, and the stop with it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in descriptors:
        os.dup2(nowhere, number)
    os.close(nowhere)


def listening(settings: Settings) -> list[socket.socket]:
    """The port is ours when this returns: nothing is begun for a server that nobody could reach. Whoever comes before the
    server is up waits. Raises BadRequest."""
    host, port = settings.host, settings.port
    ours: list[socket.socket] = []
    lacking: OSError | None = None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                ours.append(_bound(socket.socket(family, kind, protocol), (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in LACKING:
                    raise
                lacking = error
                continue
            port = ours[-1].getsockname()[1]  # of a name with two addresses both have the one that was free
        if lacking is not None and not ours:
            raise lacking
    except OSError as error:
        for one in ours:
            one.close()
        if error.errno == errno.EADDRINUSE:
            raise BadRequest(
                f"Port {port} is in use. Stop what uses it, or choose another --port."
            ) from error
        raise BadRequest(
            f"The server cannot listen on {host}, port {port}: {error.strerror}. Choose another --host or --port."
        ) from error
    return ours


def _bound(one: socket.socket, address: tuple[Any, ...]) -> socket.socket:
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one.family == socket.AF_INET6:  # the same port of IPv4 is another
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
        one.listen(BACKLOG)
    except OSError:
        one.close()
        raise
    return one


def protocol() -> Any:
    """The one with a bound to heads; where its parser is not to be had, uvicorn's other one, which has a bound itself."""
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
    help="Port to listen on; 0 takes a free one.  [default: 8787]",
)
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    help="Folder of models.  [default: one for the machine, ~/.cache/vademecum/models]",
)
@click.option(
    "--tls-certificate", type=click.Path(path_type=Path), help="PEM file: speak HTTPS (phones need it)."
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
    # Who comes to a folder that somebody serves is told that, not that the port is in use.
    ours = _inherited() or ([] if is_data_folder(settings.data) else listening(settings))
    from vademecum.app import create_app  # all there is, which `--help` need not wait for
    from vademecum.services.runtime import logging as logs

    logs.configure()
    with wait_for_lock(settings.data) as mine:
        if not mine:
            raise Broken(
                f"Another process is serving {settings.data}. Stop that one first, or choose another --data."
            )
        local_auth.withdraw(settings.data)
        ours = ours or listening(settings)
        app = create_app(settings)
        config = uvicorn.Config(
            app,
            http=protocol(),
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
        Server(config, app, settings, warning).run(ours)
        from vademecum.services.agents.folder_check import is_checking

        is_stuck = hasattr(app.state, "services") and app.state.services.instance.stuck_count()
        if is_stuck or is_checking():
            os._exit(0)  # the interpreter would wait for them
