"""Apply forward-only migrations, `NNNN_what.sql`, in order, each in one transaction that also records its checksum.

A file is not opened if an applied migration has changed since, or is unknown because a newer version of the server
applied it. Otherwise the server could misread the file's tables and destroy documents.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import duckdb

from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.instance import RESTORE, Connection, Instance, connect
from vademecum.errors import Broken

_TABLE = "CREATE TABLE IF NOT EXISTS migrations (name VARCHAR, checksum VARCHAR)"


@dataclass(frozen=True)
class Migration:
    name: str
    sql: str
    checksum: str


def load(folder: Path) -> tuple[Migration, ...]:
    """Return the migrations of a folder in the order of their numbers. Raises Broken if there are none."""
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not files:
        raise Broken(f"No migrations in {folder}: the installation is incomplete. Install the program again.")
    return tuple(_read(path) for path in files)


def _read(path: Path) -> Migration:
    sql = path.read_text(encoding="utf-8")
    return Migration(path.name, sql, hashlib.sha256(sql.encode()).hexdigest())


def pending(
    known: tuple[Migration, ...], applied: list[tuple[str, str]], where: str
) -> tuple[Migration, ...]:
    """Return the known migrations that are not in `applied`, which contains (name, checksum) pairs.

    Raises Broken if an applied migration is unknown or has changed.
    """
    checksums = {m.name: m.checksum for m in known}
    for name, checksum in applied:
        if name not in checksums:
            raise Broken(
                f"{where} was written by a newer version of this program (it contains the migration {name}). Nothing "
                "was changed. Start the newer version again, or restore an earlier backup."
            )
        if checksums[name] != checksum:
            raise Broken(
                f"The migration {name} differs from the one that was applied to {where}. Nothing was changed. Restore "
                "the original file and write a new migration."
            )
    done = {name for name, _ in applied}
    return tuple(m for m in known if m.name not in done)


def read_applied(cursor: Cursor, alias: str) -> list[tuple[str, str]]:
    """Return name and checksum of the migrations recorded in an attached file, or [] if it has no table for them."""
    try:
        return cursor.execute(f"SELECT name, checksum FROM {alias}.main.migrations").fetchall()
    except duckdb.CatalogException:
        return []


def attach_migrated(
    instance: Instance, path: Path, known: tuple[Migration, ...], where: str, cure: str = RESTORE
) -> tuple[str, str | None]:
    """Attach a file, creating it if it is missing, and migrate it.

    A damaged log is repaired first, because otherwise the file cannot be opened. Return the alias and a sentence about
    the repair, as `Instance.attach_repaired` does.
    """
    alias, notice = instance.attach_repaired(path, cure)
    try:
        late = pending(known, read_applied(instance.cursor(), alias), where)
    except BaseException:
        instance.detach_safely(alias)
        raise
    if late:
        instance.detach(alias)
        migrate_file(path, known)
        alias = instance.attach(path)
    return alias, notice


def _connect(path: Path) -> Connection:
    try:
        return connect(path)
    except duckdb.Error as error:
        raise Broken(
            f"The file {path.name} in {path.parent} cannot be opened ({error}). Nothing was changed. If another "
            "process uses it, stop that process; otherwise restore it from a backup: see `vademecum restore --help`."
        ) from error


def migrate_file(path: Path, known: tuple[Migration, ...]) -> None:
    """Migrate a detached file. A separate connection is used, so that the SQL needs no qualified names."""
    with _connect(path) as connection:
        connection.execute(_TABLE)
        applied = connection.execute("SELECT name, checksum FROM migrations").fetchall()
        for migration in pending(known, applied, path.name):
            connection.execute("BEGIN")
            connection.execute(migration.sql)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", [migration.name, migration.checksum])
            connection.execute("COMMIT")
