"""Export: all of one's data in open formats, as a ZIP of JSON lines and plain text. Everything but the vectors of
others' making: vectors are derived, yet they are yours, so they are in it too (inside vectorEmbeddings.jsonl).
"""

from __future__ import annotations

import asyncio
import re
import zipfile
from collections.abc import Iterable
from typing import IO, Any

import msgspec

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.model.chunk import join
from vademecum.model.collections import Json

PAGE = 500
README = """This is everything the server keeps of you.

account.json               your account (no secrets)
<collection>.jsonl         one row a line, as your devices sync it
documents/<name>.txt       the text of each document
"""


async def export(
    store: UserStore, account: dict[str, Any], collections: Iterable[str], target: IO[bytes]
) -> None:
    """Write the ZIP to `target`. Content is read a page at a time."""
    texts: dict[str, dict[int, list[Json]]] = {}
    names: dict[str, str] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", README)
        archive.writestr("account.json", msgspec.json.format(msgspec.json.encode(account), indent=2))
        for collection in collections:
            with archive.open(f"{collection}.jsonl", "w") as file:
                async for row, body in _rows(store, collection):
                    await asyncio.to_thread(file.write, body + b"\n")
                    if collection == "documents":
                        names[row["id"]] = row["filename"]
                    elif collection == "vectorEmbeddings":
                        texts.setdefault(row["documentId"], {})[row["block"]] = row["chunks"]
        for document_id, blocks in texts.items():
            name = re.sub(r"[^\w. -]", "_", names.get(document_id, "document"))
            name = name.encode()[:120].decode(errors="ignore")  # file systems count bytes, 255 with the id
            chunks = [chunk for _, block in sorted(blocks.items()) for chunk in block]
            await asyncio.to_thread(archive.writestr, f"documents/{name} ({document_id}).txt", join(chunks))


async def _rows(store: UserStore, collection: str) -> Any:
    after = 0
    while True:
        page = await store.page(collection, after, PAGE)
        for _, body in page:
            row = msgspec.json.decode(body)
            if not row.get("_deleted"):
                yield row, body
        if len(page) < PAGE:
            return
        after = page[-1][0]
