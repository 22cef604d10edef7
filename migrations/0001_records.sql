-- A user's file. One table a collection; a row of it is a pack: what one commit wrote, see engines/duckdb/packs.py.
-- first: the pack's name, its first seq. seqs, heads, bodies: JSON arrays that go side by side, an element a row.
-- A head is [id, is it deleted, its parents, what it refers to ("collection/id" each), the bytes it is charged, its
-- unique value, the model of its vectors, how many chunks]; a body is the JSON as it was sent.
CREATE TABLE meta (name VARCHAR, value VARCHAR);

CREATE TABLE documents (first BIGINT, seqs VARCHAR, heads VARCHAR, bodies VARCHAR);
CREATE TABLE "vectorEmbeddings" AS FROM documents;
CREATE TABLE projects AS FROM documents;
CREATE TABLE sessions AS FROM documents;
CREATE TABLE episodes AS FROM documents;
CREATE TABLE facts AS FROM documents;
CREATE TABLE memories AS FROM documents;
CREATE TABLE entities AS FROM documents;
CREATE TABLE relationships AS FROM documents;
CREATE TABLE summaries AS FROM documents;

CREATE INDEX documents_first ON documents (first);
CREATE INDEX vectorEmbeddings_first ON "vectorEmbeddings" (first);
CREATE INDEX projects_first ON projects (first);
CREATE INDEX sessions_first ON sessions (first);
CREATE INDEX episodes_first ON episodes (first);
CREATE INDEX facts_first ON facts (first);
CREATE INDEX memories_first ON memories (first);
CREATE INDEX entities_first ON entities (first);
CREATE INDEX relationships_first ON relationships (first);
CREATE INDEX summaries_first ON summaries (first);

-- Rows whose parent is not here yet: no seq, so neither pulled nor searched. id is "collection/id", also in the head.
CREATE TABLE waiting (id VARCHAR, head VARCHAR, body VARCHAR);
