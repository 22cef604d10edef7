-- Rows of documents, vectorEmbeddings, projects, sessions and episodes get schema version 1. The program upgrades them in
-- batches when it opens the file, see engines/duckdb/row_upgrade.py. upgraded_to: the last upgraded pack; the entry is
-- deleted when all rows are upgraded.
INSERT INTO meta SELECT 'upgraded_to', '-1' WHERE EXISTS (FROM packs) OR EXISTS (FROM waiting);
