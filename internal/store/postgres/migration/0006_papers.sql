-- What people need to decide, and the log of what was done; the ports are store.Desk and store.AuditLog.

CREATE TABLE papers (
    key        bytea       PRIMARY KEY GENERATED ALWAYS AS (sha256(sha256(account) || sha256(kind) || sha256(id))) STORED,
    run_key    bytea       GENERATED ALWAYS AS (CASE WHEN run <> '' THEN sha256(sha256(account) || sha256(run)) END) STORED,
    account    bytea       NOT NULL,
    kind       bytea       NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 100),
    id         bytea       NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 2000),
    run        bytea       NOT NULL, -- empty if it belongs to none
    revision   bigint      NOT NULL,
    xid        xid8        NOT NULL, -- the transaction of the last change; the trigger says it
    facts      json, -- what may be counted; not jsonb, which would change it
    next_at    timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    body       bytea
) WITH (fillfactor = 80);

ALTER TABLE papers ALTER body SET STORAGE EXTERNAL;

CREATE INDEX papers_listed ON papers (sha256(account), kind, id);
CREATE INDEX papers_of_run ON papers (run_key) WHERE run_key IS NOT NULL;
CREATE INDEX papers_due ON papers (kind, next_at) WHERE next_at IS NOT NULL;

CREATE FUNCTION paper_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.revision <> 1 THEN
            RAISE EXCEPTION 'a paper is made with revision 1' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        NEW.xid := pg_current_xact_id();
        RETURN NEW;
    END IF;
    IF (NEW.account, NEW.kind, NEW.id, NEW.run, NEW.created_at) <> (OLD.account, OLD.kind, OLD.id, OLD.run, OLD.created_at) THEN
        RAISE EXCEPTION 'what a paper is cannot change' USING ERRCODE = 'integrity_constraint_violation';
    ELSIF NEW.revision <> OLD.revision + 1 AND ( -- sealed anew, it says the same
        NEW.revision <> OLD.revision OR (NEW.body IS NULL) <> (OLD.body IS NULL) OR NEW.updated_at <> OLD.updated_at
        OR NEW.next_at IS DISTINCT FROM OLD.next_at OR NEW.facts::text IS DISTINCT FROM OLD.facts::text) THEN
        RAISE EXCEPTION 'a paper changes with its revision' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.xid := CASE WHEN NEW.revision = OLD.revision THEN OLD.xid ELSE pg_current_xact_id() END;
    RETURN NEW;
END $$;

CREATE TRIGGER papers_stay BEFORE INSERT OR UPDATE ON papers FOR EACH ROW EXECUTE FUNCTION paper_stays();

CREATE FUNCTION paper_is_kept() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.run_key IS NULL OR EXISTS (SELECT FROM runs WHERE key = OLD.run_key AND status IN ('ready', 'running', 'waiting', 'parked')) THEN
        RAISE EXCEPTION 'the run is alive, or the paper belongs to none' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER papers_kept AFTER DELETE ON papers FOR EACH ROW EXECUTE FUNCTION paper_is_kept();

-- The interrupt of a request is decided together with the request, or not at all: whoever decides has seen the request as it is. Looked at when
-- the transaction commits, in which the one may come before the other.
CREATE FUNCTION request_was_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM papers AS p
               WHERE p.key = sha256(sha256(NEW.account) || sha256('request'::bytea) || sha256(NEW.id)) AND p.xid <> pg_current_xact_id()) THEN
        RAISE EXCEPTION 'the request was not changed with the decision' USING ERRCODE = 'FM001';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER interrupts_with_their_requests AFTER UPDATE ON interrupts DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.state = 'decided' AND OLD.state = 'pending' AND NEW.source = 'person') EXECUTE FUNCTION request_was_changed();

-- The deadline of an interrupt moves with its request, as long as it is pending.
DROP TRIGGER interrupts_asked_once ON interrupts;

CREATE TRIGGER interrupts_asked_once
AFTER UPDATE OF account, id, run, place, address, kind, answer_schema, shown, action, timeout, created_at ON interrupts
FOR EACH ROW EXECUTE FUNCTION refuse('what was asked cannot change');

CREATE TRIGGER interrupts_deadline_while_pending AFTER UPDATE OF deadline ON interrupts
FOR EACH ROW WHEN (OLD.state <> 'pending' OR NEW.deadline IS NULL)
EXECUTE FUNCTION refuse('only an interrupt that is pending has a deadline to move');

-- Each line names the one before it by its hash. The head of a chain is locked by whoever adds to it, until the commit.
CREATE TABLE audit_heads (
    account bytea  NOT NULL,
    key     bytea  PRIMARY KEY GENERATED ALWAYS AS (sha256(account)) STORED,
    seq     bigint NOT NULL,
    hash    bytea  NOT NULL CHECK (octet_length(hash) = 32)
);

CREATE TABLE audit (
    key     bytea  NOT NULL GENERATED ALWAYS AS (sha256(account)) STORED,
    account bytea  NOT NULL,
    seq     bigint NOT NULL,
    raw     bytea  NOT NULL,
    PRIMARY KEY (key, seq)
);

-- chain_link is what the line behind a head begins with; package internal/chain says the same.
CREATE FUNCTION chain_link(seq bigint, hash bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_to(format('{"v":1,"seq":%s,"prev":"%s","time":"', seq + 1, encode(hash, 'hex')), 'UTF8')
$$;

CREATE FUNCTION head_moves_on() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.seq <> 0 OR NEW.hash <> decode(repeat('00', 32), 'hex') THEN
            RAISE EXCEPTION 'a chain begins at its beginning' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSIF NEW.account <> OLD.account OR NEW.seq <> OLD.seq + 1
        OR NOT EXISTS (SELECT FROM audit WHERE key = NEW.key AND seq = NEW.seq AND sha256('\x00'::bytea || raw) = NEW.hash) THEN
        RAISE EXCEPTION 'the head of a chain is its last line' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_heads_move_on AFTER INSERT OR UPDATE ON audit_heads FOR EACH ROW EXECUTE FUNCTION head_moves_on();
CREATE TRIGGER audit_heads_kept AFTER DELETE ON audit_heads FOR EACH ROW EXECUTE FUNCTION refuse('what was recorded is kept');
CREATE TRIGGER audit_heads_not_emptied BEFORE TRUNCATE ON audit_heads FOR EACH STATEMENT EXECUTE FUNCTION refuse('what was recorded is kept');

-- A line names the head by number and hash, and becomes it: so nobody can put one anywhere else, or leave the head behind.
CREATE FUNCTION line_is_next() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    first bytea := (SELECT chain_link(seq, hash) FROM audit_heads WHERE key = NEW.key AND seq = NEW.seq - 1);
BEGIN
    IF first IS NULL OR substr(NEW.raw, 1, octet_length(first)) <> first THEN
        RAISE EXCEPTION 'each line names the one before it' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    UPDATE audit_heads SET seq = NEW.seq, hash = sha256('\x00'::bytea || NEW.raw) WHERE key = NEW.key;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_in_order AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION line_is_next();
CREATE TRIGGER audit_stays AFTER UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION refuse('what was recorded cannot change');
CREATE TRIGGER audit_kept AFTER DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse('what was recorded is kept');
CREATE TRIGGER audit_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse('what was recorded is kept');

-- write_beside writes what goes with a change: papers, by their revision, and then lines of the log. decided are interrupts whose requests must be
-- among the papers. What is stale ends the transaction with the code FM001.
--
-- Nobody waits for another in a circle: all have the run first, then its interrupts, then papers in the order of their names, and the head of
-- the log last. Whoever comes without a run in hand takes those of the papers, unless there is but one row to wait for.
CREATE FUNCTION write_beside(for_account bytea, decided bytea[], kinds bytea[], ids bytea[], run_ids bytea[], bases bigint[], bodies bytea[], all_facts text[],
                             nexts timestamptz[], deadlines timestamptz[], lines bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at   timestamptz;
    head audit_heads;
    line bytea;
BEGIN
    IF EXISTS (SELECT FROM unnest(decided) AS d (id)
               JOIN papers AS p ON p.key = sha256(sha256(for_account) || sha256('request'::bytea) || sha256(d.id))
               WHERE NOT EXISTS (SELECT FROM unnest(kinds, ids) AS c (kind, id) WHERE c.kind = 'request' AND c.id = d.id)) THEN
        RAISE EXCEPTION 'a request is not changed' USING ERRCODE = 'FM001';
    END IF;
    IF coalesce(current_setting('fermata.run', true), '') = '' AND (cardinality(ids) > 1 OR num_nonnulls(VARIADIC deadlines) > 0) THEN
        PERFORM FROM runs WHERE key = ANY (ARRAY(
            SELECT p.run_key FROM unnest(kinds, ids) AS c (kind, id) JOIN papers AS p ON p.key = sha256(sha256(for_account) || sha256(c.kind) || sha256(c.id))
            UNION
            SELECT i.run_key FROM unnest(kinds, ids) AS c (kind, id) JOIN interrupts AS i ON i.key = sha256(sha256(for_account) || sha256(c.id))
            WHERE c.kind = 'request')) AND account = for_account
        ORDER BY key FOR NO KEY UPDATE;
    END IF;
    at := clock_timestamp();
    FOR n IN 1 .. cardinality(ids) LOOP
        IF bases[n] = 0 THEN
            INSERT INTO papers (account, kind, id, run, revision, body, facts, next_at, created_at, updated_at)
            VALUES (for_account, kinds[n], ids[n], run_ids[n], 1, bodies[n], all_facts[n]::json, nexts[n], at, at)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE papers SET revision = revision + 1, body = bodies[n], facts = all_facts[n]::json, next_at = nexts[n], updated_at = at
            WHERE key = sha256(sha256(for_account) || sha256(kinds[n]) || sha256(ids[n])) AND account = for_account AND revision = bases[n];
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'a paper is stale' USING ERRCODE = 'FM001';
        END IF;
        IF deadlines[n] IS NOT NULL AND kinds[n] = 'request'::bytea THEN
            UPDATE interrupts SET deadline = deadlines[n]
            WHERE key = sha256(sha256(for_account) || sha256(ids[n])) AND account = for_account AND state = 'pending';
        END IF;
    END LOOP;
    IF cardinality(lines) = 0 THEN
        RETURN;
    END IF;
    SELECT * INTO head FROM audit_heads WHERE key = sha256(for_account) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_heads (account, seq, hash) VALUES (for_account, 0, decode(repeat('00', 32), 'hex')) ON CONFLICT DO NOTHING;
        SELECT * INTO head FROM audit_heads WHERE key = sha256(for_account) FOR NO KEY UPDATE;
    END IF;
    at := clock_timestamp(); -- the lock may have taken its time, and lines are in order
    FOREACH line IN ARRAY lines LOOP
        INSERT INTO audit (account, seq, raw)
        VALUES (for_account, head.seq + 1, chain_link(head.seq, head.hash)
                || convert_to(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '",', 'UTF8') || substr(line, 2));
        SELECT * INTO head FROM audit_heads WHERE key = sha256(for_account);
    END LOOP;
END $$;
