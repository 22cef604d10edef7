"""A model hub on this machine, with the hub's addresses and its moods."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from vademecum.engines.onnx.known import Known


class Hub(ThreadingHTTPServer):
    """`/repo/resolve/revision/path` redirects to `/cdn/path`, as the real one does for large files."""

    daemon_threads = True

    def __init__(self, known: Known, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prefix = f"/{known.repo}/resolve/{known.revision}/"
        self.files = {file.path: (folder / file.path).read_bytes() for file in known.files}
        self.log: list[tuple[str, str | None]] = []
        self.drop_after: int | None = None
        """Bytes after which every connection breaks off."""
        self.drops = 0
        """How many more times it does."""
        self.stall_s = 0.0
        """For how long a connection that is to break off stays silent before it does."""
        self.statuses: list[int] = []
        """Answers given instead, one a request."""
        self.ranges = True
        self.wrong_range = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        hub = self.server
        if hub.statuses:
            return self.answer(hub.statuses.pop(0))
        if self.path.startswith(hub.prefix):
            name = self.path.removeprefix(hub.prefix)
            return self.answer(302 if name in hub.files else 404, location=f"/cdn/{name}")
        data = hub.files[self.path.removeprefix("/cdn/")]
        wanted = self.headers.get("Range")
        hub.log.append((self.path.removeprefix("/cdn/"), wanted))
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and hub.ranges else 0
        if start and start >= len(data):
            return self.answer(416)
        body = data[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start + hub.wrong_range}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if hub.drops and hub.drop_after is not None and len(body) > hub.drop_after:
            hub.drops -= 1
            body = body[: hub.drop_after]
            self.close_connection = True
            self.wfile.write(body)
            time.sleep(hub.stall_s)
            return None
        self.wfile.write(body)
        return None

    def answer(self, status: int, location: str | None = None) -> None:
        self.send_response(status)
        if location and status == 302:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def running(known: Known, folder: Path) -> Iterator[Hub]:
    with Hub(known, folder) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
