"""A local model hub with the URLs of the real one and configurable failures."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from vademecum.engines.onnx.pinned_models import PinnedModel


class Hub(ThreadingHTTPServer):
    """Redirect `/repo/resolve/revision/path` to `/cdn/path` of another host, as the real hub does for large files.

    The address of the redirect is signed and valid for one request.
    """

    daemon_threads = True

    def __init__(self, pinned: PinnedModel, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prefix = f"/{pinned.repo}/resolve/{pinned.revision}/"
        self.files = {file.path: (folder / file.path).read_bytes() for file in pinned.files}
        self.etags = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        self.log: list[tuple[str, str | None]] = []
        """The requested files, each with its Range header."""
        self.sent = 0
        """The bytes of files that the socket accepted."""
        self.drop_after: int | None = None
        """The number of bytes after which a connection drops."""
        self.drops = 0
        """The number of connections that are still to be dropped."""
        self.silence = threading.Event()
        """While this is not set, a connection stalls instead of dropping."""
        self.silence.set()
        self.statuses: list[int] = []
        """Error statuses to return first, one per request."""
        self.ranges = True
        self.wrong_range = False
        self.signatures = itertools.count(1)
        self.signed: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def signed_address(self, name: str) -> str:
        signature = str(next(self.signatures))
        self.signed.add(signature)
        return f"http://localhost:{self.server_address[1]}/cdn/{name}?signature={signature}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients."""


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        hub = self.server
        if hub.statuses:
            return self.answer(hub.statuses.pop(0))
        if self.path.startswith(hub.prefix):
            name = self.path.removeprefix(hub.prefix)
            if name not in hub.files:
                return self.answer(404)
            return self.answer(302, Location=hub.signed_address(name))
        address = urlsplit(self.path)
        [signature] = parse_qs(address.query)["signature"]
        if signature not in hub.signed or not self.headers["Host"].startswith("localhost:"):
            return self.answer(403)
        hub.signed.remove(signature)
        return self.file(address.path.removeprefix("/cdn/"))

    def file(self, name: str) -> None:
        hub, data = self.server, memoryview(self.server.files[name])
        wanted = self.headers.get("Range")
        hub.log.append((name, wanted))
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and hub.ranges else 0
        if start and start >= len(data):
            return self.answer(416)
        body = data[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start + hub.wrong_range}-{len(data) - 1}/{len(data)}")
        if hub.ranges:
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hub.etags[name]}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if hub.drops and hub.drop_after is not None and len(body) > hub.drop_after:
            hub.drops -= 1
            self.close_connection = True
            self.send(body[: hub.drop_after])
            hub.silence.wait()
            return None
        return self.send(body)

    def send(self, body: memoryview) -> None:
        self.wfile.write(body)
        self.server.sent += len(body)

    def answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def start_hub(pinned: PinnedModel, folder: Path) -> Iterator[Hub]:
    with Hub(pinned, folder) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.silence.set()
            hub.shutdown()
            thread.join()
