-- The feed of an account has the order of the transactions. Their numbers are those of a database server: on another one, on which a backup was restored,
-- they begin anew, below those of the events that are there. Then numbers are moved, so that what happens next comes behind all that has happened, and
-- behind every place that anybody has read up to.
CREATE TABLE feed_base (
    alone  boolean PRIMARY KEY DEFAULT true CHECK (alone),
    base   bigint  NOT NULL DEFAULT 0, -- what is added to the number of a transaction
    server bigint                      -- for which that was found; NULL if for none yet
);

INSERT INTO feed_base DEFAULT VALUES;

CREATE FUNCTION feed_number(transaction xid8) RETURNS xid8 LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (transaction::text::bigint + (SELECT base FROM feed_base))::text::xid8;
END $$;

ALTER TABLE events ALTER xid SET DEFAULT feed_number(pg_current_xact_id());
