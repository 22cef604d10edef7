"""Read zip archives (OOXML, OpenDocument, EPUB) within limits, and XML without entities."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Set
from typing import Any
from urllib.parse import unquote

from lxml import etree

from vademecum.engines.files.result import Limits, Unreadable

_STRICT = re.compile(re.escape(b"http://purl.oclc.org/ooxml/") + rb"(\w+)/")

# Names of pictures, sounds and fonts. No parser unpacks these members, so their size does not matter.
_MEDIA = re.compile(
    r"\.(?:bmp|dib|emf|emz|wmf|wmz|png|jpe?g|jfif|gif|tiff?|svg|webp|wdp|mp[34]|m4[av]|wav|avi|mov|[ot]tf|odttf|fntdata)$",
    re.I,
)


def check_limits(data: bytes, limits: Limits) -> None:
    """Raise Unreadable if the members that parsers read exceed the limits of unpacked size.

    The archive itself states these sizes. `read_member` checks the real ones.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        unpacked = [info for info in infos if not _MEDIA.search(info.filename)]
        total = sum(info.file_size for info in unpacked)
        has_bomb = any(
            info.file_size > 2**20 and info.file_size > limits.expansion_ratio * max(1, info.compress_size)
            for info in unpacked
        )
        if len(infos) > 10_000 or total > limits.expansion_bytes or has_bomb:
            raise Unreadable("TOO_EXPANSIVE")


def open_office_file(data: bytes, limits: Limits) -> io.BytesIO:
    """Check an Office file and return it.

    A file with the namespaces of "Strict Open XML", or with backslashes in the names of its members, is rewritten with
    the usual names.
    """
    check_limits(data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        relations = next((name for name in names if name.replace("\\", "/") == "_rels/.rels"), None)
        is_strict = relations is not None and _STRICT.search(read_member(archive, relations, limits))
        if not is_strict and not any("\\" in name for name in names):
            return io.BytesIO(data)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as rewritten:
            for name in dict.fromkeys(names):
                if name.endswith((".xml", ".rels")):
                    rewritten.writestr(
                        name.replace("\\", "/"), use_transitional_names(read_member(archive, name, limits))
                    )
    return out


def use_transitional_names(content: bytes) -> bytes:
    """Return XML with the usual namespaces instead of those of "Strict Open XML"."""
    return _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content)


def parse_xml(data: bytes) -> Any:
    """Return the root of an XML document, without expanding entities or fetching anything. Raises Unreadable."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable("DAMAGED") from error
    if root.getroottree().docinfo.doctype and b"<!ENTITY" in data[:100_000]:
        raise Unreadable("TOO_EXPANSIVE")
    return root


def find_outermost(node: Any, tags: Set[str], skipped_tags: Set[str]) -> Iterator[Any]:
    """Yield the outermost elements with one of `tags`, in order. Skip elements with one of `skipped_tags`."""
    for child in node.iterchildren("*"):
        if child.tag in tags:
            yield child
        elif child.tag not in skipped_tags:
            yield from find_outermost(child, tags, skipped_tags)


def member_finder(archive: zipfile.ZipFile) -> Callable[[str], str | None]:
    """Return a function that finds the archive member for a path.

    An exact match is preferred. Otherwise case, backslashes and percent escapes are ignored, because programs use them
    inconsistently.
    """

    def normalize(name: str) -> str:
        return unquote(name).replace("\\", "/").lower()

    names = archive.namelist()
    similar, exact = {normalize(name): name for name in names}, {name: name for name in names}

    def find(address: str) -> str | None:
        return exact.get(unquote(address)) or exact.get(address) or similar.get(normalize(address))

    return find


def read_member(archive: zipfile.ZipFile, name: str, limits: Limits) -> bytes:
    """Return the content of a member. Raises Unreadable if its real size exceeds the limit, or if it is damaged."""
    try:
        with archive.open(name) as file:
            content = file.read(limits.expansion_bytes + 1)
    except (KeyError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise Unreadable("DAMAGED") from error
    if len(content) > limits.expansion_bytes:
        raise Unreadable("TOO_EXPANSIVE")
    return content
