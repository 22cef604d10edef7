-- What a language model is to do with a user's rows, behind the answers: see model/jobs.py.
-- id: the kind and the row it is about (`subject`, "collection/id"), so a row has one job of a kind. Times are ISO 8601.
-- due: when to try; asked: when the model was asked last; seq: of the row when the job was made. text: a digest of what is
-- worked on, which stays when the job is done, so that a text is worked on once. found: what the model has answered, from
-- then until it is stored. Without an index: a log that must replay one has cost others their files.
CREATE TABLE jobs (id VARCHAR, kind VARCHAR, subject VARCHAR, state VARCHAR, attempts INTEGER, due VARCHAR,
                   asked VARCHAR, error VARCHAR, seq BIGINT, text VARCHAR, found VARCHAR);
