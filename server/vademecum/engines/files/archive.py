"""Zip archives (OOXML, OpenDocument, EPUB): looked through before anything is unpacked; XML without entities."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Set
from typing import Any
from urllib.parse import unquote

from lxml import etree

from vademecum.engines.files.parsed import Limits, Unreadable

_STRICT = re.compile(re.escape(b"http://purl.oclc.org/ooxml/") + rb"(\w+)/")

_KINDS = "[Content_Types].xml"
_MAIN = b"application/vnd.openxmlformats-officedocument.%s.main+xml"
# Templates, shows, and what has macros in it are written as documents and presentations are.
_KIN = tuple(
    (re.compile(rb"application/vnd\.(?:%s)\.main\+xml" % kin, re.I), _MAIN % usual)
    for kin, usual in (
        (
            rb"ms-word\.(?:document|template)\.macroEnabled(?:Template)?"
            rb"|openxmlformats-officedocument\.wordprocessingml\.template",
            b"wordprocessingml.document",
        ),
        (
            rb"ms-powerpoint\.(?:slideshow|template)\.macroEnabled"
            rb"|openxmlformats-officedocument\.presentationml\.(?:slideshow|template)",
            b"presentationml.presentation",
        ),
    )
)


def check(data: bytes, limits: Limits) -> None:
    """Refuse what would unpack to too much. The sizes that an archive states are checked again by its reader."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        total = sum(info.file_size for info in infos)
        worst = any(
            i.file_size > 2**20 and i.file_size > limits.expansion_ratio * max(1, i.compress_size)
            for i in infos
        )
        if len(infos) > 10_000 or total > limits.expansion_bytes or worst:
            raise Unreadable("TOO_EXPANSIVE")


def office(data: bytes, limits: Limits) -> io.BytesIO:
    """An Office file that was checked. One saved as "Strict Open XML" has other names for the same things, and a template
    or a show is called otherwise, which the libraries do not know: these get the usual ones."""
    check(data, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        looked_at = {name: member(archive, name, limits) for name in ("_rels/.rels", _KINDS) if name in names}
        if all(_usual(name, content) == content for name, content in looked_at.items()):
            return io.BytesIO(data)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as usual:
            for name in dict.fromkeys(names):  # pictures must be there, but nobody looks at them
                told = name.endswith((".xml", ".rels"))
                usual.writestr(name, _usual(name, member(archive, name, limits)) if told else b"")
    return out


def _usual(name: str, content: bytes) -> bytes:
    if name == _KINDS:
        for kin, usual in _KIN:
            content = kin.sub(usual, content)
    return _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content)


def without_lost(file: io.BytesIO, limits: Limits) -> io.BytesIO:
    """The archive without relations to members that it does not have (`NULL`, a picture that a program took out): Word
    passes over them, python-docx does not."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        relations = {name: member(archive, name, limits) for name in names if name.endswith(".rels")}
        sound = {name: _sound(name, content, set(names)) for name, content in relations.items()}
        if sound == relations:
            return file
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as mended:
            for name in dict.fromkeys(names):
                mended.writestr(name, sound[name] if name in sound else member(archive, name, limits))
    return out


def _sound(name: str, content: bytes, names: Set[str]) -> bytes:
    """A list of relations, `…/_rels/….rels`, as it is where all of them are to be found."""
    root = xml(content)
    folder = "/" + posixpath.dirname(posixpath.dirname(name))
    lost = [
        relation
        for relation in root.iterchildren("*")
        if relation.get("TargetMode") != "External"
        and posixpath.normpath(posixpath.join(folder, relation.get("Target", ""))).lstrip("/") not in names
    ]
    for relation in lost:
        root.remove(relation)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8") if lost else content


def xml(data: bytes) -> Any:
    """The root of an XML document; entities are not expanded, nothing is fetched."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable("DAMAGED") from error
    if root.getroottree().docinfo.doctype and b"<!ENTITY" in data[:100_000]:
        raise Unreadable("TOO_EXPANSIVE")
    return root


def topmost(node: Any, wanted: Set[str], gone: Set[str]) -> Iterator[Any]:
    """Elements of these names, in order: none of one that lies within another, none of what is gone."""
    for child in node.iterchildren("*"):
        if child.tag in wanted:
            yield child
        elif child.tag not in gone:
            yield from topmost(child, wanted, gone)


def meant(archive: zipfile.ZipFile) -> Callable[[str], str | None]:
    """Which member an address means, if any: the one that is called so, or else one that comes near, because programs do
    not agree with themselves on large letters, nor on what an address spells otherwise."""

    def plain(name: str) -> str:
        return unquote(name).lower()

    names = archive.namelist()
    near, exact = {plain(name): name for name in names}, {name: name for name in names}

    def find(address: str) -> str | None:
        return exact.get(unquote(address)) or exact.get(address) or near.get(plain(address))

    return find


def member(archive: zipfile.ZipFile, name: str, limits: Limits) -> bytes:
    """One member, bounded whatever the archive says of its size."""
    try:
        with archive.open(name) as file:
            content = file.read(limits.expansion_bytes + 1)
    except (KeyError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise Unreadable("DAMAGED") from error
    if len(content) > limits.expansion_bytes:
        raise Unreadable("TOO_EXPANSIVE")
    return content
