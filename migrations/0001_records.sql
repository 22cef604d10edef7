-- A user's file. One table a collection, the latest state of each row, in the order of seq.
-- No primary keys: the heads kept in memory know every id, and an index costs more than all else in a push.
-- head: what memory holds of the row, as a JSON array: is it deleted, its parents, what it refers to ("collection/id"
-- each), the bytes it is charged, its unique value. body: the JSON as it was sent.
CREATE TABLE meta (name VARCHAR, value VARCHAR);

CREATE TABLE documents (seq BIGINT, id VARCHAR, head VARCHAR, body VARCHAR);
CREATE TABLE "vectorEmbeddings" AS FROM documents;
CREATE TABLE projects AS FROM documents;
CREATE TABLE sessions AS FROM documents;
CREATE TABLE episodes AS FROM documents;
CREATE TABLE facts AS FROM documents;
CREATE TABLE memories AS FROM documents;
CREATE TABLE entities AS FROM documents;
CREATE TABLE relationships AS FROM documents;
CREATE TABLE summaries AS FROM documents;

-- Rows whose parent is not here yet: no seq (0), so neither pulled nor searched. id is "collection/id".
CREATE TABLE waiting AS FROM documents;
