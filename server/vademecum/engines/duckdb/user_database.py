"""Create, migrate, attach, commit to and rewrite one user's file. `segments` describes its content.

Functions that use the file are blocking: run them in the threads of the engine.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from vademecum.engines.duckdb import ingested_events, job_table, segments
from vademecum.engines.duckdb import migrations as migrate
from vademecum.engines.duckdb.body_cache import BodyCache
from vademecum.engines.duckdb.cursor import Cursor
from vademecum.engines.duckdb.instance import Instance
from vademecum.engines.duckdb.row_upgrade import UPGRADED_TO, upgrade_rows
from vademecum.engines.duckdb.segment_index import SegmentIndex, SegmentName, SegmentPlan
from vademecum.engines.duckdb.segments import (
    NewChecksum,
    RowLocations,
    Statement,
)
from vademecum.errors import Broken
from vademecum.fsync import sync_folder
from vademecum.model.agents.ingested_events import IngestedEventChanges
from vademecum.model.memory.job_changes import JobChanges
from vademecum.model.memory.jobs import Job, StoredJobs
from vademecum.model.schema.collections import Collection
from vademecum.model.sync.transaction import (
    SEQ_JUMP,
    Gaps,
    RecordsMeta,
    RowIndex,
    Transaction,
    deletes_content,
    replaces_text,
)

# Key of `meta`. A commit that requires an erasure sets it, and the rewrite of the file deletes it.
ERASURE_DUE = "erasure_due"
_gaps = msgspec.json.Decoder(Gaps)


@dataclass(slots=True)
class UserDatabase:
    """An attached file with its indexes in memory. `notice` is a message if its log was truncated."""

    alias: str
    row_index: RowIndex
    segment_index: SegmentIndex
    meta: RecordsMeta
    notice: str | None
    jobs: StoredJobs
    mac_key: str
    erasure_due: bool = False  # whether text was deleted or replaced since the last rewrite
    body_cache: BodyCache = field(default_factory=BodyCache)

    def begin_transaction(
        self, cursor: Cursor, collections: Mapping[str, Collection], now: str
    ) -> Transaction:
        """Return a transaction on the newest state. Only one writer may have a transaction at a time."""

        def read(keys: list[str]) -> dict[str, bytes]:
            cached = self.body_cache.find(keys, self.row_index)
            locations = self.locate_rows(key for key in keys if key not in cached)
            return cached | segments.read_bodies(cursor, self.alias, locations, self.segment_index)

        def read_jobs(ids: list[str]) -> Mapping[str, Job]:
            return job_table.read_jobs(cursor, self.alias, ids)

        def read_ingested(ids: list[str]) -> set[str]:
            return ingested_events.select_ingested(cursor, self.alias, ids)

        jobs = JobChanges(replace(self.jobs, read=read_jobs))
        events = IngestedEventChanges(read_ingested)
        return Transaction(self.row_index, read, collections, self.meta, now, jobs, events)

    def locate_rows(self, keys: Iterable[str]) -> RowLocations:
        """Return where the rows with these keys are stored."""
        return segments.locate_rows(self.segment_index, [(self.row_index.rows[key].seq, key) for key in keys])

    def commit(
        self,
        cursor: Cursor,
        tx: Transaction,
        meta: Mapping[str, str],
        compact: Set[SegmentName] = frozenset(),
        new_checksums: Sequence[NewChecksum] = (),
    ) -> dict[str, SegmentPlan] | None:
        """Commit the transaction with its jobs and events, further entries of the table `meta`, and `new_checksums`.

        The segments in `compact` are rewritten without stale rows. Return what `apply_commit` needs, or None if there was
        nothing to commit.
        """
        # Skip segments that an earlier commit has compacted or removed since the compaction was requested.
        segments_to_compact = (
            [name for name in self.segment_index.segments_to_compact() if name in compact] if compact else []
        )
        forgets = tx.meta.forgotten_at != self.meta.forgotten_at
        meta = {**meta, **_meta_changes(self.meta, tx.meta), **job_table.meta_changes(tx, self.jobs)}
        events = ingested_events.statements(
            self.alias,
            tx.ingested_events.added_ids,
            tx.now,
            tx.ingested_events.expire_before,
            forget_all=forgets,
        )
        if not (tx.changes or tx.jobs.changed or meta or segments_to_compact or events or new_checksums):
            return None
        more = [
            *meta_statements(self.alias, meta),
            *job_table.statements(self.alias, tx.jobs.changed, self.jobs.open, tx.jobs.missing_ids),
            *events,
        ]
        return segments.write_commit(
            cursor,
            self.alias,
            tx.changes,
            self.row_index,
            self.segment_index,
            segments_to_compact,
            more,
            new_checksums,
        )

    def apply_commit(self, tx: Transaction, plans: Mapping[str, SegmentPlan]) -> None:
        """Apply a committed transaction to memory. Call it in the event loop, where readers use the same memory."""
        self.row_index.apply(tx.changes)
        self.row_index.seq = tx.seq
        self.meta = tx.meta
        self.segment_index.apply_commit(plans, self.row_index)
        self.body_cache.absorb(tx.changes.values())
        self.erasure_due |= needs_erasure(tx)
        job_table.apply_commit(tx, self.jobs)


@dataclass
class DatabaseFactory:
    """A factory that opens users' files, with the served collections and the migrations of their tables.

    Other files may be detached while a file is opened. So no statement here may read all attached files, as
    `duckdb_tables()` does: DuckDB would not really detach a file that such a statement reads.
    """

    instance: Instance
    collections: tuple[str, ...]
    migrations: tuple[migrate.Migration, ...]
    template: Path

    def open(self, path: Path, last_seq: int = 0) -> UserDatabase:
        """Attach a file, creating or migrating it first if necessary, and load its row heads.

        `last_seq` is the highest seq at which this process detached the file, or 0. If it is not 0, `seq` continues
        without a gap.
        """
        is_new = not path.exists()
        if is_new:
            self._create(path)
        with self.instance.sized_deadline(path):
            return self._open(path, is_new, last_seq)

    def _open(self, path: Path, is_new: bool, last_seq: int) -> UserDatabase:
        where = f"the file of {path.parent.name}"
        alias, notice = migrate.attach_migrated(self.instance, path, self.migrations, where)
        cursor = self.instance.cursor()
        try:
            meta = dict(cursor.execute(f"SELECT name, value FROM {alias}.main.meta").fetchall())
            if (upgraded_to := meta.pop(UPGRADED_TO, None)) is not None:
                upgrade_rows(cursor, alias, int(upgraded_to), path.parent.name)
            new: dict[str, str] = {}
            is_without_epoch = "epoch" not in meta  # a new file, or one recovered after its log was truncated
            if is_without_epoch or notice:
                # If a damaged log has lost commits that devices have seen, devices upload them again, as after a
                # restore.
                new["epoch"] = new_epoch()
            for name in {"id_key", "mac_key"} - meta.keys():
                new[name] = new_id_key()
            if new:
                set_meta(cursor, alias, new)
                meta |= new
            row_index, segment_index = segments.load_index(cursor, alias, self.collections)
            row_index.seq = max(row_index.seq, int(meta.get("seq_floor", "0")))
            is_cut = notice is not None or (is_without_epoch and row_index.seq > 0)
            if is_cut:
                # Mark all rows as restored, because devices may have newer versions, as after a restore.
                before = {"restored_seq": str(row_index.seq), "gaps": "[]"}
                row_index.seq += SEQ_JUMP
                set_meta(cursor, alias, {"seq_floor": str(row_index.seq), **before})
                meta |= before
            stored_jobs = job_table.load_jobs(cursor, alias, meta)
            records_meta = RecordsMeta(
                epoch=meta["epoch"],
                forgotten_at=meta.get("forgotten_at", ""),
                id_key=meta["id_key"],
                restored_seq=int(meta.get("restored_seq", "0")),
                gaps=_gaps.decode(meta.get("gaps", "[]")),
                next_gap=0 if is_new or last_seq or is_cut else SEQ_JUMP * (1 + secrets.randbelow(1024)),
            )
            due = ERASURE_DUE in meta
            return UserDatabase(
                alias, row_index, segment_index, records_meta, notice, stored_jobs, meta["mac_key"], due
            )
        except BaseException:
            self.instance.detach_safely(alias)
            raise

    def _create(self, path: Path) -> None:
        """Create a file atomically: copy the template, sync it, rename it into place."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        shutil.copyfile(self.template, new)
        publish_file(new, path)

    def prepare_template(self) -> None:
        """Create the template that new files are copied from, unless a complete one exists.

        Called once, when the server starts.
        """
        for stale in self.template.parent.glob(".template-*"):
            if stale != self.template or not self._is_whole(stale):
                with suppress(IsADirectoryError):  # keep a folder, which the server did not create
                    stale.unlink()
        if not self.template.exists():
            new = self.template.with_name(f"{self.template.name}.new")
            migrate.migrate_file(new, self.migrations)
            publish_file(new, self.template)

    def _is_whole(self, template: Path) -> bool:
        try:
            alias = self.instance.attach(template)
        except Broken:
            return False
        try:
            return not migrate.pending(
                self.migrations, migrate.read_applied(self.instance.cursor(), alias), template.name
            )
        finally:
            self.instance.detach(alias)


def rewrite_records(instance: Instance, path: Path) -> None:
    """Rewrite a user's file and record in it that no erasure is due."""
    no_longer_due = f"DELETE FROM {{}}.main.meta WHERE name = '{ERASURE_DUE}'"
    rewrite_file(instance, path, no_longer_due)


def rewrite_file(instance: Instance, path: Path, then: str = "") -> None:
    """Replace a detached file with a copy of its live content and delete old logs.

    Only a rewrite removes bytes from a DuckDB file. `then` is an SQL statement to run in the new file, in which `{}`
    stands for the file's alias. Raises Broken if the copy is incomplete.
    """
    with staged(path) as new, instance.sized_deadline(path):
        source = instance.attach(path)
        try:
            target = instance.attach(new)
            try:
                instance.copy_database(source, target)
                if then:
                    instance.cursor().execute(then.format(target))
            finally:
                instance.detach(target)
        finally:
            instance.detach(source)
        if new.with_name(new.name + ".wal").exists():
            raise Broken(f"{new.name} was not written completely. The previous file stays in use.")
        publish_file(new, path)
    for old in (".wal", ".wal.damaged"):
        path.with_name(path.name + old).unlink(missing_ok=True)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield the path at which to build a replacement of `path`.

    Delete leftover files at that path before and after the block.

    A leftover could contain content that was meant to be erased.
    """
    new = path.with_name(path.name + ".new")
    _unlink_all(new)
    try:
        yield new
    finally:
        _unlink_all(new)


def _unlink_all(path: Path) -> None:
    for end in ("", ".wal", ".wal.damaged"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def needs_erasure(tx: Transaction) -> bool:
    changes = tx.changes.values()
    return deletes_content(changes) or replaces_text(changes)


def new_epoch() -> str:
    return secrets.token_urlsafe(9)


def new_id_key() -> str:
    return secrets.token_urlsafe(24)


def set_meta(cursor: Cursor, alias: str, values: dict[str, str]) -> None:
    segments.commit(cursor, meta_statements(alias, values))


def _meta_changes(before: RecordsMeta, after: RecordsMeta) -> dict[str, str]:
    """Return the entries of the table `meta` that differ."""
    if after is before:
        return {}
    changed = {
        name: value if isinstance(value := getattr(after, name), str) else msgspec.json.encode(value).decode()
        for name in ("epoch", "forgotten_at", "id_key", "restored_seq", "gaps")
        if getattr(after, name) != getattr(before, name)
    }
    return changed


def meta_statements(alias: str, values: Mapping[str, str]) -> list[Statement]:
    if not values:
        return []
    names, rows = ", ".join("?" * len(values)), ", ".join(["(?, ?)"] * len(values))
    return [
        (f"DELETE FROM {alias}.main.meta WHERE name IN ({names})", [*values]),
        (f"INSERT INTO {alias}.main.meta VALUES {rows}", [one for both in values.items() for one in both]),
    ]


def publish_file(new: Path, path: Path) -> None:
    """Replace `path` with `new` durably: fsync, rename into place, fsync the folder."""
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)
