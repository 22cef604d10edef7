-- A user's file. A row of `packs` is what one commit wrote to one collection, see engines/duckdb/packs.py.
-- first: the pack's name, its first seq, which no other pack has. seqs, heads, bodies: JSON arrays that go side by side,
-- an element a row. A head is [id, is it deleted, its parents, what it refers to ("collection/id" each), the bytes it is
-- charged, its unique value, the model of its vectors, how many chunks]; a body is the JSON as it was sent.
CREATE TABLE packs (first BIGINT, collection VARCHAR, seqs VARCHAR, heads VARCHAR, bodies VARCHAR);
CREATE INDEX packs_first ON packs (first);

-- Rows whose parent is not here yet: no seq, so neither pulled nor searched. id is "collection/id", also in the head.
CREATE TABLE waiting (id VARCHAR, head VARCHAR, body VARCHAR);

CREATE TABLE meta (name VARCHAR, value VARCHAR);
