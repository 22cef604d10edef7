"""One user's file: made from a template, attached, read by seq, written a draft at a time, rewritten to erase.

Blocking code: run it in the engine's threads. A flush is one DELETE and one INSERT a collection, whatever the
number of rows. The order of the rows of a page is the order of `seq`, which the transaction assigned.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from vademecum.engines.duckdb import migrate
from vademecum.engines.duckdb.instance import Cursor, Instance
from vademecum.errors import Broken
from vademecum.model.draft import WAITING, Change, Head, Heads

# After a crash `seq` goes on this much further: should the disk have lost the end of a log without a trace, a device
# that had seen it is not handed the same numbers for other rows.
SEQ_JUMP = 2**20

Statement = tuple[str, list[Any]]


@dataclass(slots=True)
class Opened:
    """An attached file and what memory holds of it. `notice`: what an operator should know about the opening."""

    alias: str
    heads: Heads
    epoch: str
    forgotten_at: str
    notice: str | None


@dataclass
class Files:
    """How to open users' files: the collections that need tables, and the migrations that make them.

    While one file is opened others are detached, so no statement here may look at all attached files, as
    `duckdb_tables()` does: a detach under its snapshot is one in name only.
    """

    instance: Instance
    collections: tuple[str, ...]
    migrations: tuple[migrate.Migration, ...]
    template: Path
    added: tuple[str, ...] = ()  # collections of the registry that the migrations do not make

    def open(self, path: Path) -> Opened:
        """Attach, creating or migrating first if need be, and load the heads."""
        if not path.exists():
            self._create(path)
        log = path.with_name(path.name + ".wal")
        crashed = log.exists()
        alias, notice = self.instance.attach(path)
        cursor = self.instance.cursor()
        try:
            applied = migrate.applied_in(cursor, alias)
            if migrate.pending(self.migrations, applied, f"the file of {path.parent.name}"):
                self.instance.detach(alias)
                migrate.migrate_file(path, self.migrations)
                alias, _ = self.instance.attach(path)
            for name in self.added:
                cursor.execute(
                    f'CREATE TABLE IF NOT EXISTS {alias}.main."{name}" AS FROM {alias}.main.documents LIMIT 0'
                )
            meta = dict(cursor.execute(f"SELECT name, value FROM {alias}.main.meta").fetchall())
            if "epoch" not in meta or notice:
                # A damaged log has cost commits that devices have seen: as after a restore, they bring them back.
                meta["epoch"] = secrets.token_urlsafe(9)
                set_meta(cursor, alias, {"epoch": meta["epoch"]})
            heads = _load_heads(cursor, alias, self.collections)
            heads.seq = max(heads.seq, int(meta.get("seq_floor", "0"))) + (SEQ_JUMP if crashed else 0)
            return Opened(alias, heads, meta["epoch"], meta.get("forgotten_at", ""), notice)
        except BaseException:
            self.instance.detach(alias)
            raise

    def _create(self, path: Path) -> None:
        """A file appears whole or not at all: copied from a template, synced, renamed into place."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        shutil.copyfile(self.template, new)
        publish_file(new, path)

    def prepare(self) -> None:
        """Once, at the start: make the empty file that new users' files are copied from, and see what it lacks."""
        for stale in self.template.parent.glob(".template-*"):
            if stale != self.template:
                stale.unlink()
        if not self.template.exists():
            new = self.template.with_name(f"{self.template.name}.new")
            migrate.migrate_file(new, self.migrations)
            publish_file(new, self.template)
        have = migrate.tables_of(self.template)
        self.added = tuple(name for name in self.collections if name not in have)

    def stamp(self, path: Path, meta: dict[str, str]) -> None:
        """Set what a detached file says of itself, migrating it first: it may come from an older backup."""
        migrate.migrate_file(path, self.migrations)
        alias, _ = self.instance.attach(path)
        try:
            set_meta(self.instance.cursor(), alias, meta)
        finally:
            self.instance.detach(alias)

    def rewrite(self, path: Path, seq_floor: int) -> None:
        """Write the live content into a new file and put it in place: the only way bytes leave a DuckDB file.

        The file must be detached. `seq_floor`: the highest seq ever given, so that none is given twice.
        """
        source, _ = self.instance.attach(path)
        try:
            set_meta(self.instance.cursor(), source, {"seq_floor": str(seq_floor)})
        finally:
            self.instance.detach(source)
        rewrite_file(self.instance, path)


def rewrite_file(instance: Instance, path: Path) -> None:
    """Copy what lives in a detached file into a new one, put that in its place, remove old logs."""
    new = path.with_name(path.name + ".new")
    for stale in (new, new.with_name(new.name + ".wal")):
        stale.unlink(missing_ok=True)
    source, _ = instance.attach(path)
    try:
        target, _ = instance.attach(new)
        try:
            instance.copy_database(source, target)
        finally:
            instance.detach(target)
    finally:
        instance.detach(source)
    if new.with_name(new.name + ".wal").exists():
        raise Broken(f"{new.name} was not written whole. The file that was there before stays in its place.")
    publish_file(new, path)
    for old in (".wal", ".wal.damaged"):
        path.with_name(path.name + old).unlink(missing_ok=True)


def set_meta(cursor: Cursor, alias: str, values: dict[str, str]) -> None:
    _commit(cursor, _settings(alias, values))


def _settings(alias: str, values: dict[str, str]) -> list[Statement]:
    found: list[Statement] = []
    for name, value in values.items():
        found.append((f"DELETE FROM {alias}.main.meta WHERE name = ?", [name]))
        found.append((f"INSERT INTO {alias}.main.meta VALUES (?, ?)", [name, value]))
    return found


def publish_file(new: Path, path: Path) -> None:
    """fsync, rename into place, fsync the folder."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _load_heads(cursor: Cursor, alias: str, collections: Sequence[str]) -> Heads:
    parts = [f"SELECT '{name}/' || id, seq, head FROM {alias}.main.\"{name}\"" for name in collections]
    parts.append(f"SELECT id, seq, head FROM {alias}.main.waiting")
    rows = cursor.execute(" UNION ALL ".join(parts)).fetchall()
    heads = Heads()
    heads.absorb({key: Change(key, None, Head(seq, *_heads.decode(head)), b"") for key, seq, head in rows})
    return heads


def read_bodies(cursor: Cursor, alias: str, heads: Heads, keys: Iterable[str]) -> dict[str, bytes]:
    """Bodies of rows that have a head, one statement a collection."""
    seqs: dict[str, dict[int, str]] = {}
    waiting: list[str] = []
    for key in keys:
        head = heads.rows.get(key)
        if head is None:
            continue
        if head.seq == WAITING:
            waiting.append(key)
        else:
            seqs.setdefault(key.partition("/")[0], {})[head.seq] = key
    found: dict[str, bytes] = {}
    for name, by_seq in seqs.items():
        statement = f'SELECT seq, body FROM {alias}.main."{name}" WHERE seq BETWEEN ? AND ? AND seq IN (SELECT unnest(?))'
        wanted = list(by_seq)
        for seq, body in cursor.execute(statement, [min(wanted), max(wanted), wanted]).fetchall():
            found[by_seq[seq]] = body.encode()
    if waiting:
        statement = f"SELECT id, body FROM {alias}.main.waiting WHERE id IN (SELECT unnest(?))"
        found.update((key, body.encode()) for key, body in cursor.execute(statement, [waiting]).fetchall())
    return found


def read_bodies_by_id(cursor: Cursor, alias: str, keys: Iterable[str]) -> dict[str, bytes]:
    """Bodies of live or dead rows, wherever they stand now; scans the ids of each collection."""
    ids: dict[str, list[str]] = {}
    for key in keys:
        name, _, row_id = key.partition("/")
        ids.setdefault(name, []).append(row_id)
    found: dict[str, bytes] = {}
    for name, wanted in ids.items():
        statement = f'SELECT id, body FROM {alias}.main."{name}" WHERE id IN (SELECT unnest(?))'
        rows = cursor.execute(statement, [wanted]).fetchall()
        found.update((f"{name}/{row_id}", body.encode()) for row_id, body in rows)
    return found


def read_page(cursor: Cursor, alias: str, collection: str, after: int, limit: int) -> list[tuple[int, str]]:
    """(seq, body) of the rows with seq > after, at most `limit`, in one snapshot.

    The bound first, then the range: sorting bare numbers is three times quicker than sorting bodies.
    """
    table = f'{alias}.main."{collection}"'
    return cursor.execute(
        f"SELECT seq, body FROM {table} WHERE seq > ? AND seq <= "
        f"(SELECT max(seq) FROM (SELECT seq FROM {table} WHERE seq > ? ORDER BY seq LIMIT ?)) ORDER BY seq",
        [after, after, limit],
    ).fetchall()


def find_unembedded(cursor: Cursor, alias: str, model: str) -> list[str]:
    """Ids of the blocks that lack vectors of `model`, in the order of seq; tombstones too."""
    rows = cursor.execute(
        f'SELECT id FROM {alias}.main."vectorEmbeddings" WHERE '
        "json_extract(body, '$.embedding') = 'null' OR json_extract_string(body, '$.model') <> ? ORDER BY seq",
        [model],
    ).fetchall()
    return [block_id for (block_id,) in rows]


def count_chunks(cursor: Cursor, alias: str, block_ids: list[str]) -> dict[str, int]:
    """Block id -> how many chunks it has."""
    rows = cursor.execute(
        f"SELECT id, json_array_length(body, '$.chunks') FROM {alias}.main.\"vectorEmbeddings\" "
        "WHERE id IN (SELECT unnest(?))",
        [block_ids],
    ).fetchall()
    return dict(rows)


def flush(cursor: Cursor, alias: str, changes: Iterable[Change], meta: dict[str, str]) -> None:
    """Write a draft's changes in one transaction. On any error nothing of it is stored."""
    gone: dict[str, list[int]] = {}
    come: dict[str, list[Change]] = {}
    left_waiting: list[str] = []
    for change in changes:
        name = change.key.partition("/")[0]
        if change.before is not None:
            if change.before.seq == WAITING:
                left_waiting.append(change.key)
            else:
                gone.setdefault(name, []).append(change.before.seq)
        if change.head is not None:
            come.setdefault("waiting" if change.head.seq == WAITING else name, []).append(change)
    statements: list[Statement] = []
    if left_waiting:
        statements.append(
            (f"DELETE FROM {alias}.main.waiting WHERE id IN (SELECT unnest(?))", [left_waiting])
        )
    for name, seqs in gone.items():
        table = f'{alias}.main."{name}"'
        where = "seq BETWEEN ? AND ? AND seq IN (SELECT unnest(?))"
        statements.append((f"DELETE FROM {table} WHERE {where}", [min(seqs), max(seqs), seqs]))
    for name, rows in come.items():
        statements.append(_insertion(f'{alias}.main."{name}"', rows, whole_key=name == "waiting"))
    _commit(cursor, [*statements, *_settings(alias, meta)])


def _commit(cursor: Cursor, statements: list[Statement]) -> None:
    """Run all in one transaction. One alone is its own, which spares two calls: each waits for Python's lock anew,
    and while others push that is where the time of a push goes."""
    if len(statements) == 1:
        cursor.execute(*statements[0])
        return
    cursor.execute("BEGIN")
    try:
        for statement in statements:
            cursor.execute(*statement)
        cursor.execute("COMMIT")
    except BaseException:
        cursor.execute("ROLLBACK")
        raise


def _insertion(table: str, rows: list[Change], *, whole_key: bool) -> Statement:
    heads = [row.head for row in rows if row.head is not None]
    return (
        f"INSERT INTO {table} (seq, id, head, body) SELECT unnest(?), unnest(?), unnest(?), unnest(?)",
        [
            [head.seq for head in heads],
            [row.key if whole_key else row.key.partition("/")[2] for row in rows],
            [_head_column(head) for head in heads],
            [row.body.decode() for row in rows],
        ],
    )


# Deleted, parents, references, size, tag: one column of JSON, because a push's cost grows with its columns.
_heads = msgspec.json.Decoder(tuple[bool, tuple[str, ...], tuple[str, ...], int, str])


def _head_column(head: Head) -> str:
    return msgspec.json.encode((head.deleted, head.parents, head.references, head.size, head.tag)).decode()
