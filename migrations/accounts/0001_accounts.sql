-- Who may use this server. Secrets are stored as hashes only.
CREATE TABLE accounts (
  id VARCHAR PRIMARY KEY, email VARCHAR NOT NULL, tier VARCHAR NOT NULL, admin BOOLEAN NOT NULL,
  password VARCHAR, created_at VARCHAR NOT NULL
);
-- kind: api | cookie | link. hash: sha-256 of the secret, which itself is 256 random bits.
CREATE TABLE tokens (
  id VARCHAR PRIMARY KEY, account_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, name VARCHAR NOT NULL,
  hash VARCHAR NOT NULL, created_at VARCHAR NOT NULL, expires_at VARCHAR
);
