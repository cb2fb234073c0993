-- What happened to runs; the port is store.Events.
--
-- The number of an event is counted on the row of its run, under its lock. That alone would do for one run. Whoever follows a whole
-- account needs an order in which nothing comes late: that of the transactions. An event may be read by them once every transaction with a
-- lower number has ended.

CREATE TABLE events (
    run_key   bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED,
    xid       xid8        NOT NULL DEFAULT pg_current_xact_id(),
    id        bigint      GENERATED ALWAYS AS IDENTITY, -- the order within a transaction
    number    bigint      NOT NULL,
    at        timestamptz NOT NULL,
    account   bytea       NOT NULL,
    run       bytea       NOT NULL,
    kind      text        NOT NULL,
    interrupt bytea       NOT NULL, -- empty if it is about none
    PRIMARY KEY (run_key, number)
);

CREATE INDEX events_feed ON events (sha256(account), xid, id);

CREATE TRIGGER events_happened AFTER UPDATE ON events FOR EACH ROW EXECUTE FUNCTION refuse('what happened cannot change');
CREATE TRIGGER events_kept AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION kept_while_the_run_is_alive();
