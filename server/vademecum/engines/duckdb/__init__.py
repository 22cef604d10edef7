"""The engine of truth: a DuckDB file a user, attached on demand to one instance. Only this package imports duckdb.

instance   one DuckDB instance; a cursor a thread; attach and detach
migrate    forward-only, checksummed migrations
userfile   one user's file: create, attach, read, flush a transaction, rewrite without the erased
userstore  one user: the write queue, reads, and the rows as they are published
folders    where an account's rows lie on the disk
users      all users: which are attached, pinned, evicted
accounts   who may use this server
"""
