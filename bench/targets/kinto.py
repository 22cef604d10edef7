"""Kinto on PostgreSQL, as `kinto start` serves it (waitress, one process): a bucket a user, batches of 50, fsync.

In its favour: cache in memory, no history, no quotas, explicit buckets, the limit of a batch raised from 25 to 50.
It has no stream. Ids lose their dots, which it does not allow.
"""

from __future__ import annotations

import base64
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from client import HOST, Answer, request
from rows import Maker, Row
from targets.base import Collection, Target, free_port, must, run
from targets.install import kinto_peer, postgres_commands
from targets.postgres import Postgres

SETTINGS = """
[server:main]
use = egg:waitress#main
host = {host}
port = {port}
threads = {threads}
[app:main]
use = egg:kinto
kinto.storage_backend = kinto.core.storage.postgresql
kinto.storage_url = {url}
kinto.permission_backend = kinto.core.permission.postgresql
kinto.permission_url = {url}
kinto.cache_backend = kinto.core.cache.memory
kinto.userid_hmac_secret = bench
kinto.batch_max_requests = 50
kinto.bucket_create_principals = system.Authenticated
kinto.paginate_by = 10000
multiauth.policies = basicauth
multiauth.policy.basicauth.use = kinto.core.authentication.BasicAuthAuthenticationPolicy
[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = plain
[logger_root]
level = ERROR
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
level = NOTSET
formatter = plain
[formatter_plain]
format = %(message)s
"""


class Reply(msgspec.Struct):
    status: int
    body: Any = None


class Replies(msgspec.Struct):
    responses: list[Reply]


class Page(msgspec.Struct):
    data: list[Row]


_replies = msgspec.json.Decoder(Replies).decode
_page = msgspec.json.Decoder(Page).decode


class Kinto(Target):
    name = "kinto"
    durability = "PostgreSQL, fsync"
    streams = False
    scale: ClassVar[float] = 0.05
    _postgres: Postgres | None = None

    def install(self) -> None:
        kinto_peer(self.root)
        postgres_commands()

    def start(self, folder: Path, users: int) -> None:
        commands = kinto_peer(self.root)
        self._postgres = Postgres()
        try:
            self._postgres.start(self, folder)
            self.port = free_port()
            settings = folder / "kinto.ini"
            settings.write_text(
                SETTINGS.format(host=HOST, port=self.port, url=self._postgres.url, threads=max(4, users))
            )
            run([str(commands / "kinto"), "migrate", "--ini", str(settings)], cwd=folder)
            self.spawn([str(commands / "kinto"), "start", "--ini", str(settings)], folder)
            self.wait_for_port()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        if self._postgres is not None:
            self._postgres.remove()
            self._postgres = None

    def stop_signal(self, process: subprocess.Popen[bytes]) -> signal.Signals:
        """SIGINT is PostgreSQL's fast shutdown, and ends Kinto too."""
        return signal.SIGINT

    def _headers(self, user: int) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(f"user{user}:secret".encode()).decode()}

    async def prepare(self, makers: Sequence[Maker], blocks: int) -> None:
        for maker in makers:
            bucket, headers = f"/v1/buckets/u{maker.user}", self._headers(maker.user)
            paths = [bucket, f"{bucket}/collections/episodes", f"{bucket}/collections/vectorEmbeddings"]
            await must(self.port, *(request("PUT", path, headers) for path in paths))

    def push(self, user: int, collection: Collection, batch: Sequence[Row]) -> bytes:
        base = f"/buckets/u{user}/collections/{collection}/records"
        requests = [{"path": f"{base}/{_id(row)}", "body": {"data": _as_record(row)}} for row in batch]
        body = msgspec.json.encode({"defaults": {"method": "PUT"}, "requests": requests})
        return request("POST", "/v1/batch", self._headers(user), body)

    def push_faults(self, answer: Answer, count: int) -> list[str]:
        if not answer.ok:
            return [f"{answer.status} {answer.body[:300]!r}"]
        taken = _replies(answer.body).responses
        faults = [f"{reply.status} {reply.body}" for reply in taken if reply.status != 201]
        return faults if faults or len(taken) == count else [f"{len(taken)} answers to {count} rows"]

    def pull(self, user: int, collection: Collection, limit: int, last: Answer | None) -> bytes | None:
        path = f"/v1/buckets/u{user}/collections/{collection}/records?_sort=last_modified&_limit={limit}"
        if last is not None:
            following = last.headers.get(b"next-page")
            if following is None:
                return None
            path = "/v1/" + following.decode().partition("/v1/")[2]
        return request("GET", path, self._headers(user))

    def rows(self, answer: Answer) -> list[Row]:
        return [_as_row(record) for record in _page(answer.body).data]


def _id(row: Row) -> str:
    return str(row["id"]).replace(".", "_")


def _as_record(row: Row) -> Row:
    return {**{name: value for name, value in row.items() if name != "_deleted"}, "id": _id(row)}


def _as_row(record: Row) -> Row:
    rest = {name: value for name, value in record.items() if name != "last_modified"}
    return {**rest, "id": record["id"].replace("_", "."), "_deleted": False}
