-- The life of what is kept; the port is store.Keeping.

-- Values of which there is one for ever.
CREATE TABLE once (
    key   bytea      PRIMARY KEY GENERATED ALWAYS AS (sha256(name)) STORED,
    name  identifier NOT NULL,
    value bytea      NOT NULL
);

CREATE TRIGGER once_named AFTER UPDATE OF name ON once FOR EACH ROW EXECUTE FUNCTION refuse('what is kept once stays');
CREATE TRIGGER once_kept AFTER DELETE ON once FOR EACH ROW EXECUTE FUNCTION refuse('what is kept once stays');

-- Who has the bytes of a part from elsewhere need not read them here. Being generated, the digest is right after a save as
-- after a reseal. The parts that an executor saves are sealed, and cannot be compressed.
ALTER TABLE checkpoint_parts ALTER data SET STORAGE EXTERNAL, ADD data_digest bytea NOT NULL GENERATED ALWAYS AS (sha256(data)) STORED;
