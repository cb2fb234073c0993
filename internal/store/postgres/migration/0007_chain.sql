-- The end of a chain is its last line, and nothing else says so: a head that was kept beside the lines had to be written, checked and read again with
-- each of them, which took more time than the line. Whoever adds to a chain has its lock until the commit, and finds the end himself.

DROP TABLE audit_heads;
DROP TRIGGER audit_in_order ON audit;
DROP FUNCTION line_is_next(), head_moves_on(), chain_link(bigint, bytea);

-- chain_link is what the line behind a head begins with; package internal/chain says the same. It says nothing but what the server can put in the
-- place of the call.
CREATE FUNCTION chain_link(seq bigint, hash bytea) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT convert_to('{"v":1,"seq":' || (seq + 1)::text || ',"prev":"' || encode(hash, 'hex') || '","time":"', 'UTF8')
$$;

-- chain_hash is what the line behind this one names it by; NULL is the beginning.
CREATE FUNCTION chain_hash(raw bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN raw IS NULL THEN '\x0000000000000000000000000000000000000000000000000000000000000000'::bytea ELSE sha256('\x00'::bytea || raw) END
$$;

-- A line names the one before it by number and hash: so nobody can put one anywhere else. Of two with one number there is but one.
CREATE FUNCTION line_is_next() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    before bytea;
    first  bytea;
BEGIN
    IF NEW.seq <> 1 THEN
        SELECT raw INTO before FROM audit WHERE key = NEW.key AND seq = NEW.seq - 1;
    END IF;
    first := chain_link(NEW.seq - 1, chain_hash(before));
    IF NEW.seq <> 1 AND before IS NULL OR substr(NEW.raw, 1, octet_length(first)) <> first THEN
        RAISE EXCEPTION 'each line names the one before it' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER audit_in_order AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION line_is_next();

DROP FUNCTION write_beside;

-- write_beside writes what goes with a change: papers, by their revision, and then lines of the log. What is stale ends the transaction with the code
-- FM001; so does a decision without its request, when the transaction commits (request_was_changed).
--
-- Nobody waits for another in a circle: all have the run first, then its interrupts, then papers in the order of their names, and the lock of
-- the log last. Whoever comes without a run in hand takes those of the papers, unless there is but one row to wait for.
--
-- Conditions on a state are said in words that lead to no index: as long as the server has not counted what is pending it would rather look through
-- all of that.
CREATE FUNCTION write_beside(for_account bytea, kinds bytea[], ids bytea[], run_ids bytea[], bases bigint[], bodies bytea[], all_facts text[],
                             nexts timestamptz[], deadlines timestamptz[], lines bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at     timestamptz;
    number bigint;
    last   bytea;
    line   bytea;
BEGIN
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
            WHERE key = sha256(sha256(for_account) || sha256(ids[n])) AND account = for_account
              AND state IS NOT DISTINCT FROM 'pending' AND deadline IS DISTINCT FROM deadlines[n];
        END IF;
    END LOOP;
    IF cardinality(lines) = 0 THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(for_account, 'hex'), 1));
    SELECT seq, raw INTO number, last FROM audit WHERE key = sha256(for_account) ORDER BY seq DESC LIMIT 1;
    number := coalesce(number, 0);
    at := clock_timestamp(); -- the lock may have taken its time, and lines are in order
    FOREACH line IN ARRAY lines LOOP
        last := chain_link(number, chain_hash(last))
                || convert_to(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '",', 'UTF8') || substr(line, 2);
        number := number + 1;
        INSERT INTO audit (account, seq, raw) VALUES (for_account, number, last);
    END LOOP;
END $$;
