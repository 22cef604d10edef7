"""The protocol of our server and rxdb-server, with the routes pull, push and pullStream of each collection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import msgspec

from client import Answer, request
from rows import Row
from targets.base import Collection, Target


class Checkpoint(msgspec.Struct):
    id: str
    lwt: float


class Page(msgspec.Struct):
    """A page of rows. The rows are not decoded, because only their number is needed while the clock runs."""

    documents: list[msgspec.Raw]
    checkpoint: Checkpoint


class Rows(msgspec.Struct):
    documents: list[Row]


class Pushed(msgspec.Struct, omit_defaults=True, rename="camel"):
    new_document_state: Row


_page = msgspec.json.Decoder(Page).decode
_rows = msgspec.json.Decoder(Rows).decode


def push_body(batch: Sequence[Row]) -> bytes:
    return msgspec.json.encode([Pushed(row) for row in batch])


class RxWire(Target):
    @abstractmethod
    def base(self, user: int, collection: Collection) -> str:
        """Return the base path of a collection's replication routes."""

    def headers(self, user: int) -> Mapping[str, str]:
        return {}

    def push(self, user: int, collection: Collection, batch: Sequence[Row]) -> bytes:
        path = f"{self.base(user, collection)}/push"
        return request("POST", path, self.headers(user), push_body(batch))

    def push_faults(self, answer: Answer, count: int) -> list[str]:
        if answer.ok and answer.body == b"[]":
            return []
        return [f"{answer.status} {answer.body[:300]!r}"]

    def pull(self, user: int, collection: Collection, limit: int, last: Answer | None) -> bytes | None:
        lwt, identity = "0", ""
        if last is not None:
            page = _page(last.body)
            if len(page.documents) < limit:
                return None
            lwt, identity = f"{page.checkpoint.lwt!r}", page.checkpoint.id
            lwt = lwt.removesuffix(".0")
        path = f"{self.base(user, collection)}/pull?lwt={lwt}&id={identity}&limit={limit}"
        return request("GET", path, self.headers(user))

    def rows(self, answer: Answer) -> list[Row]:
        return _rows(answer.body).documents

    def stream(self, user: int) -> bytes:
        return request("GET", f"{self.base(user, 'episodes')}/pullStream", self.headers(user))
