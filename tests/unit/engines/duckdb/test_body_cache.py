"""The cache of recently written bodies returns only current rows, drops deleted ones, and stays within its bound."""

from vademecum.engines.duckdb.body_cache import CACHE_BYTES_MAX, BodyCache
from vademecum.model.sync.transaction import Change, RowHead, RowIndex


class File:
    def __init__(self):
        self.row_index, self.recent, self.seq = RowIndex(), BodyCache(), 0

    def commit(self, *rows, deleted=False, followed=True):
        """Commit rows. `followed`: whether the changes are passed to the cache."""
        changes = {}
        for key, body in rows:
            self.seq += 1
            changes[key] = Change(
                key, self.row_index.rows.get(key), RowHead(self.seq, deleted, (), (), 0), body
            )
        self.row_index.apply(changes)
        if followed:
            self.recent.absorb(changes.values())

    def find(self, *keys):
        return self.recent.find(keys, self.row_index)


def test_cached_body_matches_the_current_row():
    file = File()
    file.commit(("facts/a", b"one"), ("facts/b", b"two"))
    assert file.find("facts/a", "facts/b", "facts/c") == {"facts/a": b"one", "facts/b": b"two"}
    file.commit(("facts/a", b"three"))
    assert file.find("facts/a") == {"facts/a": b"three"}
    file.commit(("facts/a", b"four"), followed=False)
    assert file.find("facts/a") == {}, "an outdated body must not be returned"


def test_deleted_rows_are_not_cached():
    file = File()
    file.commit(("facts/a", b"a secret"))
    file.commit(("facts/a", b"a tombstone"), deleted=True)
    assert file.find("facts/a") == {} and not file.recent._bodies
    file.commit(("facts/b", b"waits"))
    file.recent.absorb([Change("facts/b", file.row_index.rows["facts/b"], None, b"")])
    assert not file.recent._bodies


def test_oldest_bodies_are_evicted():
    file = File()
    size = CACHE_BYTES_MAX // 4
    for number in range(10):
        file.commit((f"facts/{number}", b"x" * size))
    assert set(file.find(*(f"facts/{n}" for n in range(10)))) == {f"facts/{n}" for n in range(6, 10)}
    file.commit(("facts/large", b"x" * (CACHE_BYTES_MAX + 1)), ("facts/9", b"small"))
    assert set(file.recent._bodies) == {"facts/6", "facts/7", "facts/8", "facts/9"}
    file.commit(*((f"facts/{n}", b"y" * size) for n in range(10)))
    assert len(file.recent._bodies) == 4
