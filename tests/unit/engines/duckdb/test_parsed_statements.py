"""A statement is parsed only once for all cursors, and the size of the cache of parsed statements is bounded."""

from vademecum.engines.duckdb import instance
from vademecum.engines.duckdb.instance import PARSED_LENGTH, PARSED_MAX, connect, parse_cached

SQL = "INSERT INTO t VALUES (?)"


def test_parsed_statement_serves_other_cursors(tmp_path):
    first = connect(tmp_path / "first")
    statement = parse_cached(first, SQL)
    first.close()
    second = connect(tmp_path / "second")
    assert parse_cached(second, SQL) is statement
    second.execute("CREATE TABLE t (x VARCHAR)")
    for value in ("a", "b"):
        second.execute(parse_cached(second, SQL), [value])
    assert second.execute("SELECT x FROM t ORDER BY x").fetchall() == [("a",), ("b",)]


def test_cache_of_parsed_statements_is_bounded(tmp_path):
    cursor = connect(tmp_path / "any")
    long = f"SELECT {'1, ' * PARSED_LENGTH} 1"
    assert len(cursor.execute(parse_cached(cursor, long)).fetchall()[0]) == PARSED_LENGTH + 1
    assert long not in instance._parsed
    for number in range(PARSED_MAX + 10):
        parse_cached(cursor, f"SELECT {number}")
    assert 0 < len(instance._parsed) <= PARSED_MAX
