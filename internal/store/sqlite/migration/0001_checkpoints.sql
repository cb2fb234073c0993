-- Checkpoints as versioned parts; the port is package store.
--
-- Keys and names are BLOB, not TEXT: they hold arbitrary bytes, and text functions stop at a NUL.

CREATE TABLE checkpoints (
    account    BLOB    NOT NULL,
    run        BLOB    NOT NULL CHECK (length(run) > 0),
    version    INTEGER NOT NULL CHECK (version > 0),
    updated_at INTEGER NOT NULL, -- microseconds since 1970, UTC; for operators, no code depends on it
    PRIMARY KEY (account, run)
) STRICT, WITHOUT ROWID;

-- With a rowid, unlike checkpoints: rows of kilobytes inside the primary key's own tree leave room for few keys on a
-- page. Measured without one: with parts of 2 to 20 kB loads take a third longer and saves a fifth; with parts of 200
-- bytes both are a tenth faster.
CREATE TABLE checkpoint_parts (
    account BLOB NOT NULL,
    run     BLOB NOT NULL,
    name    BLOB NOT NULL CHECK (length(name) > 0),
    data    BLOB NOT NULL,
    PRIMARY KEY (account, run, name),
    FOREIGN KEY (account, run) REFERENCES checkpoints (account, run) ON DELETE CASCADE
) STRICT;
