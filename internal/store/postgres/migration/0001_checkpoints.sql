-- Checkpoints as versioned parts; the port is package store.
--
-- Account, run and names are bytea, not text: they hold arbitrary bytes, and text takes neither NUL nor invalid UTF-8.
-- They are found by their digests, because they may have any length and a key in an index must not be longer than 2704 bytes.
-- The digest of a key is one of two digests, so that account and run cannot run into each other.

CREATE TABLE checkpoints (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account    bytea       NOT NULL,
    run        bytea       NOT NULL CHECK (octet_length(run) > 0),
    digest     bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED UNIQUE,
    version    bigint      NOT NULL CHECK (version > 0),
    updated_at timestamptz NOT NULL -- for operators, no code depends on it
) WITH (fillfactor = 50); -- each save writes its row again: with room on the page no index has to know

CREATE TABLE checkpoint_parts (
    checkpoint bigint NOT NULL REFERENCES checkpoints (id) ON DELETE CASCADE,
    name       bytea  NOT NULL CHECK (octet_length(name) > 0),
    digest     bytea  NOT NULL GENERATED ALWAYS AS (sha256(name)) STORED,
    data       bytea  NOT NULL,
    PRIMARY KEY (checkpoint, digest)
) WITH (fillfactor = 80);
