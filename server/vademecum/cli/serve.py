"""`vademecum serve`: the server itself."""

from __future__ import annotations

import gc
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import uvicorn
from litestar import Litestar

from vademecum.app import create_app
from vademecum.cli.door import locked
from vademecum.cli.options import data_option, settings_to_begin
from vademecum.errors import BadRequest, Broken
from vademecum.services import local, logs
from vademecum.services.accounts import ensure_owner
from vademecum.services.parts import Parts
from vademecum.settings import Settings

STOP_S = 20
GC_EVERY = 50_000  # new objects between looks for cycles: a push makes thousands, none of them cyclic


class Server(uvicorn.Server):
    """Says where it listens once it does, and closes the streams first when asked to stop: uvicorn waits for them."""

    def __init__(self, config: uvicorn.Config, app: Litestar, settings: Settings) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            parts: Parts = self._app.state.parts
            port = self.servers[0].sockets[0].getsockname()[1]
            scheme = "https" if self.config.is_ssl else "http"
            host = self._settings.host if self._settings.host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
            url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
            gc.freeze()
            gc.set_threshold(GC_EVERY, 20, 20)
            local.publish(self._settings.data, local.Door(url, os.getpid(), parts.local_secret))
            link = await ensure_owner(parts)
            click.echo(f"Vademecum listens on {url}", err=True)
            click.echo(f"Data: {self._settings.data}", err=True)
            if link is not None:
                click.echo(
                    f"Sign in (once, within 15 minutes): {self._settings.origin or url}{link}", err=True
                )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        local.path(self._settings.data).unlink(missing_ok=True)
        await super().shutdown(sockets)
        gc.unfreeze()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, which raises the signal again at the end: but who was asked to stop and stopped has not failed."""
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if hasattr(self._app.state, "parts"):
            self._app.state.parts.hub.close()
        super().handle_exit(sig, frame)


def _check_certificate(settings: Settings) -> None:
    """Raises BadRequest before anything is opened."""
    if settings.tls_certificate is None and settings.tls_key is None:
        return
    if settings.tls_certificate is None:
        raise BadRequest("--tls-key needs --tls-certificate.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        key = f" with the key {settings.tls_key}" if settings.tls_key is not None else ""
        raise BadRequest(
            f"The certificate {settings.tls_certificate}{key} cannot be used: {error.strerror or error}. "
            "Both are PEM files, and the key belongs to the certificate."
        ) from error


@click.command()
@data_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.  [default: 8787]")
@click.option("--models", type=click.Path(path_type=Path), help="Folder of models.  [default: <data>/models]")
@click.option(
    "--tls-certificate", type=click.Path(path_type=Path), help="PEM file: speak HTTPS (phones need it)."
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM file of the private key.")
@click.option("--trusted-proxies", help="Addresses whose X-Forwarded-* headers are believed.")
@click.option("--origin", help="Public URL behind a proxy, such as https://docs.example.org.")
@click.option(
    "--erase-delay-s", type=float, help="Seconds from a delete to its erasure from the disk.  [default: 60]"
)
def serve(data: Path, **flags: object) -> None:
    """Serve the app and its API.

    On a new data folder this makes a local owner account and prints a link that signs a browser in, once. Every
    setting is also an environment variable: VADEMECUM_PORT, VADEMECUM_TIERS (JSON), VADEMECUM_RATES (JSON) …
    """
    settings = settings_to_begin(data, **flags)
    _check_certificate(settings)
    logs.configure()
    with locked(settings.data) as mine:
        if not mine:
            raise Broken(
                f"Another process is serving {settings.data}. Stop that one first, or choose another --data."
            )
        app = create_app(settings)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            lifespan="on",
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies or None,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
            timeout_graceful_shutdown=STOP_S,
            server_header=False,
        )
        Server(config, app, settings).run()
