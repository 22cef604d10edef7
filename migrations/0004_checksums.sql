-- checksum: of the whole pack, see engines/duckdb/packs.py; NULL in packs of older versions until all their rows were read
-- and found valid. A migration that changes a pack sets it to NULL. The index goes because of reports of corrupt ones:
-- packs are found by collection and range of `first`.
DROP INDEX packs_first;
ALTER TABLE packs ADD COLUMN checksum VARCHAR;
