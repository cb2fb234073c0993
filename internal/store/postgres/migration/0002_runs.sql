-- Runs, what they ask, who decided what, and which effects were begun; the port is store.Runs.
--
-- What must never be in the book is refused here, whoever writes: a bug, another build, a script. The code asks first and
-- so does not meet these refusals; the one that it relies on is the foreign key of effects.
--
-- What a caller chooses (accounts, ids, keys, digests) is bytea and is found by digests, as in checkpoints. Every key is one of
-- digests of which the account's is the first. Words of the port are text. What is sealed cannot be compressed.

-- A domain is checked when a value is set; a check of the table with each change of a row, and PostgreSQL reads its text anew each time.
CREATE DOMAIN identifier AS bytea CHECK (octet_length(VALUE) > 0);
CREATE DOMAIN run_status AS text CHECK (VALUE IN
    ('ready', 'running', 'waiting', 'parked', 'completed', 'failed', 'cancelled', 'superseded'));
CREATE DOMAIN receipt_result AS text CHECK (VALUE IN
    ('accepted', 'already_decided', 'expired', 'superseded', 'digest_mismatch', 'not_found'));
CREATE DOMAIN interrupt_state AS text CHECK (VALUE IN ('pending', 'decided', 'withdrawn'));
CREATE DOMAIN interrupt_verdict AS text CHECK (VALUE IN ('approve', 'reject', 'answer', 'expire'));
CREATE DOMAIN interrupt_source AS text CHECK (VALUE IN ('person', 'clock', 'policy'));
CREATE DOMAIN effect_state AS text CHECK (VALUE IN ('started', 'succeeded', 'failed', 'indeterminate'));

CREATE SEQUENCE ready_numbers; -- the order in which runs became ready

CREATE TABLE runs (
    key          bytea       PRIMARY KEY GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED,
    handle       bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(state_key))) STORED,
    account      bytea       NOT NULL,
    run          identifier  NOT NULL,
    state_key    identifier  NOT NULL,
    generation   integer     NOT NULL,
    provider     bytea       NOT NULL,
    graph        bytea       NOT NULL,
    input_digest bytea       NOT NULL,
    status       run_status  NOT NULL,
    fence        bigint      NOT NULL,
    owner        bytea,
    lease_until  timestamptz,
    attempts     integer     NOT NULL DEFAULT 0,
    held         boolean     NOT NULL DEFAULT false, -- parked until somebody has looked at it
    ready_no     bigint,
    ready_after  timestamptz, -- ready, but not before
    events       bigint      NOT NULL DEFAULT 0, -- how many it has
    places       integer     NOT NULL DEFAULT 0, -- of its interrupts, the last one
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    ref          bytea,
    input        bytea,
    outcome      bytea,
    CONSTRAINT lease_exactly_while_running CHECK (
        (status = 'running') = (lease_until IS NOT NULL) AND (lease_until IS NULL) = (owner IS NULL)),
    CONSTRAINT held_only_while_parked CHECK (NOT held OR status = 'parked'),
    CONSTRAINT ready_in_order CHECK (ready_no IS NOT NULL OR status <> 'ready'),
    CONSTRAINT delayed_only_while_ready CHECK (ready_after IS NULL OR status = 'ready')
) WITH (fillfactor = 70); -- a row is written again with each event: with room on the page few indexes have to know

ALTER TABLE runs ALTER ref SET STORAGE EXTERNAL, ALTER input SET STORAGE EXTERNAL, ALTER outcome SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX runs_alive ON runs (handle) WHERE status IN ('ready', 'running', 'waiting', 'parked');
CREATE UNIQUE INDEX runs_generations ON runs (handle, generation);
CREATE INDEX runs_listed ON runs (sha256(account), status, created_at);
CREATE INDEX runs_ready ON runs (ready_no) WHERE status = 'ready' AND ready_after IS NULL;
CREATE INDEX runs_delayed ON runs (ready_after) WHERE status = 'ready' AND ready_after IS NOT NULL;
CREATE INDEX runs_leased ON runs (lease_until) WHERE status = 'running';
CREATE INDEX runs_over ON runs (updated_at) WHERE status IN ('completed', 'failed', 'cancelled', 'superseded');

CREATE TABLE resumes (
    key        bytea       PRIMARY KEY GENERATED ALWAYS AS (sha256(sha256(account) || sha256(actor) || sha256(id))) STORED,
    run_key    bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED,
    account    bytea       NOT NULL,
    actor      bytea       NOT NULL,
    id         bytea       NOT NULL,
    body       bytea       NOT NULL,
    run        bytea       NOT NULL, -- as the decision named it; there may be none
    result     receipt_result NOT NULL,
    interrupt  bytea       NOT NULL, -- the one that a refusal is about
    created_at timestamptz NOT NULL,
    outcome    bytea,                -- of the execution that applied it
    CONSTRAINT accepted_or_refused CHECK (CASE result WHEN 'accepted' THEN octet_length(interrupt) = 0 ELSE outcome IS NULL END)
) WITH (fillfactor = 80);

ALTER TABLE resumes ALTER outcome SET STORAGE EXTERNAL;

CREATE INDEX resumes_of_run ON resumes (run_key);

CREATE TABLE interrupts (
    key           bytea       PRIMARY KEY GENERATED ALWAYS AS (sha256(sha256(account) || sha256(id))) STORED,
    run_key       bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED,
    -- A person's decision has a receipt.
    resume_key    bytea       GENERATED ALWAYS AS (sha256(sha256(account) || sha256(decided_by) || sha256(resume))) STORED,
    -- What an effect needs: there is one only if an action was approved, and it names the run and that action.
    approval      bytea       GENERATED ALWAYS AS (
        CASE WHEN verdict = 'approve' AND octet_length(final) > 0 THEN sha256(sha256(run) || sha256(final)) END) STORED,
    account       bytea       NOT NULL,
    id            bytea       NOT NULL,
    run           bytea       NOT NULL,
    place         integer     NOT NULL, -- the order in which those of a run became visible
    address       bytea       NOT NULL,
    kind          bytea       NOT NULL,
    shown         bytea       NOT NULL,
    action        bytea       NOT NULL, -- empty if there is nothing to approve
    timeout       bigint      NOT NULL, -- nanoseconds, as asked; deadline is what counts
    created_at    timestamptz NOT NULL,
    deadline      timestamptz,
    state         interrupt_state NOT NULL DEFAULT 'pending',
    verdict       interrupt_verdict,
    final         bytea,
    decided_by    bytea,
    via           bytea,
    source        interrupt_source,
    decided_at    timestamptz,
    resume        bytea,
    applied       boolean     NOT NULL DEFAULT false,
    data          bytea,
    answer_schema bytea,
    answer        bytea,
    -- What effects refer to. Unique already by the primary key; a foreign key wants it said.
    UNIQUE (key, approval),
    CONSTRAINT asked_by_a_run FOREIGN KEY (run_key) REFERENCES runs (key),
    CONSTRAINT decided_with_a_receipt FOREIGN KEY (resume_key) REFERENCES resumes (key),
    CONSTRAINT verdict_exactly_when_decided CHECK (
        CASE state WHEN 'decided' THEN num_nulls(verdict, final, decided_by, via, source, decided_at) = 0
        ELSE num_nonnulls(verdict, final, answer, decided_by, via, source, decided_at, resume) = 0 AND NOT applied END),
    CONSTRAINT receipt_for_a_person CHECK ((resume IS NOT NULL) = (source IS NOT DISTINCT FROM 'person')),
    CONSTRAINT nothing_after_the_deadline_but_the_clock CHECK (CASE source
        WHEN 'clock' THEN deadline IS NOT NULL AND decided_at >= deadline AND verdict = 'expire' AND octet_length(final) = 0
        ELSE deadline IS NULL OR decided_at IS NULL OR decided_at < deadline END),
    CONSTRAINT approve_says_what CHECK (octet_length(action) = 0 OR octet_length(final) > 0 OR verdict IS DISTINCT FROM 'approve')
) WITH (fillfactor = 80);

ALTER TABLE interrupts ALTER data SET STORAGE EXTERNAL, ALTER answer SET STORAGE EXTERNAL;

-- What was applied is apart: a long run leaves most of its interrupts behind, and the next owner and the next rest need not pass them by.
CREATE INDEX interrupts_of_run ON interrupts (run_key, applied, place);
CREATE INDEX interrupts_resumed ON interrupts (resume_key) WHERE resume_key IS NOT NULL;
CREATE INDEX interrupts_due ON interrupts (deadline) WHERE state = 'pending' AND deadline IS NOT NULL;

CREATE TABLE effects (
    interrupt_key bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(interrupt))) STORED,
    run_key       bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(account) || sha256(run))) STORED,
    approval      bytea       NOT NULL GENERATED ALWAYS AS (sha256(sha256(run) || sha256(digest))) STORED,
    account       bytea       NOT NULL,
    interrupt     bytea       NOT NULL,
    number        integer     NOT NULL CHECK (number > 0),
    run           bytea       NOT NULL,
    digest        identifier  NOT NULL,
    target_key    bytea       NOT NULL,
    fence         bigint      NOT NULL,
    state         effect_state NOT NULL DEFAULT 'started',
    error         bytea       NOT NULL DEFAULT '',
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    receipt       bytea,
    PRIMARY KEY (interrupt_key, number),
    -- No line without an approve of exactly this, by this account, in this run.
    CONSTRAINT approved_exactly FOREIGN KEY (interrupt_key, approval) REFERENCES interrupts (key, approval),
    CONSTRAINT ended_unless_started CHECK ((state = 'started') = (ended_at IS NULL) AND (ended_at IS NOT NULL OR receipt IS NULL))
) WITH (fillfactor = 80);

ALTER TABLE effects ALTER receipt SET STORAGE EXTERNAL;

CREATE INDEX effects_of_run ON effects (run_key, state);

-- What follows refuses changes. A trigger that names columns looks at statements that set them, and at nothing else: no value has
-- to be compared that may be large. What is sealed may be sealed anew, but it cannot come or go by that.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER runs_named_once
AFTER UPDATE OF account, run, state_key, generation, provider, graph, input_digest, created_at ON runs
FOR EACH ROW EXECUTE FUNCTION refuse('what a run began with cannot change');

CREATE TRIGGER runs_sealed AFTER UPDATE OF ref, input, outcome ON runs FOR EACH ROW
WHEN ((OLD.input IS NULL) <> (NEW.input IS NULL)
  OR OLD.status <> 'running' AND ((OLD.ref IS NULL) <> (NEW.ref IS NULL) OR (OLD.outcome IS NULL) <> (NEW.outcome IS NULL)))
EXECUTE FUNCTION refuse('what a run was given or has come to stays');

-- A new owner has a higher fence, and nothing lowers it.
CREATE TRIGGER runs_fenced AFTER UPDATE OF fence, owner ON runs FOR EACH ROW
WHEN (NEW.fence < OLD.fence OR NEW.fence = OLD.fence AND NEW.owner IS NOT NULL AND NEW.owner IS DISTINCT FROM OLD.owner)
EXECUTE FUNCTION refuse('a run changes hands with a higher fence only');

CREATE TRIGGER runs_count_up AFTER UPDATE OF events, places ON runs FOR EACH ROW
WHEN (NEW.events < OLD.events OR NEW.places < OLD.places) EXECUTE FUNCTION refuse('what has happened cannot become less');

CREATE TRIGGER runs_kept AFTER DELETE ON runs FOR EACH ROW
WHEN (OLD.status IN ('ready', 'running', 'waiting', 'parked')) EXECUTE FUNCTION refuse('the run is alive');

CREATE TRIGGER resumes_answered_once AFTER UPDATE OF account, actor, id, body, run, result, interrupt, created_at ON resumes
FOR EACH ROW EXECUTE FUNCTION refuse('a receipt cannot change');

CREATE TRIGGER resumes_sealed AFTER UPDATE OF outcome ON resumes FOR EACH ROW
WHEN (OLD.outcome IS NOT NULL AND NEW.outcome IS NULL) EXECUTE FUNCTION refuse('the outcome of a resume stays');

CREATE TRIGGER interrupts_written_once AFTER INSERT ON interrupts FOR EACH ROW
WHEN (NEW.state <> 'pending' AND NEW.source IS DISTINCT FROM 'policy')
EXECUTE FUNCTION refuse('an interrupt becomes visible as pending, or with the word of a policy');

CREATE TRIGGER interrupts_asked_once
AFTER UPDATE OF account, id, run, place, address, kind, answer_schema, shown, action, timeout, created_at, deadline ON interrupts
FOR EACH ROW EXECUTE FUNCTION refuse('what was asked cannot change');

CREATE TRIGGER interrupts_decided_once
AFTER UPDATE OF state, verdict, final, decided_by, via, source, decided_at, resume ON interrupts FOR EACH ROW
WHEN (OLD.state = 'decided' OR OLD.state = 'withdrawn' AND NEW.state = 'decided')
EXECUTE FUNCTION refuse('the interrupt was decided or withdrawn');

CREATE TRIGGER interrupts_sealed AFTER UPDATE OF data, answer ON interrupts FOR EACH ROW
WHEN ((OLD.data IS NULL) <> (NEW.data IS NULL) OR OLD.state = 'decided' AND (OLD.answer IS NULL) <> (NEW.answer IS NULL))
EXECUTE FUNCTION refuse('what was asked or answered stays');

CREATE TRIGGER interrupts_applied_once AFTER UPDATE OF applied ON interrupts FOR EACH ROW
WHEN (OLD.applied) EXECUTE FUNCTION refuse('a decision is applied once');

CREATE TRIGGER effects_written_once AFTER INSERT ON effects FOR EACH ROW
WHEN (NEW.state <> 'started') EXECUTE FUNCTION refuse('an effect begins at its beginning');

CREATE TRIGGER effects_same_line AFTER UPDATE OF account, interrupt, number, run, digest, target_key, fence, started_at ON effects
FOR EACH ROW EXECUTE FUNCTION refuse('what was begun cannot change');

CREATE TRIGGER effects_end_once AFTER UPDATE OF state, error, ended_at ON effects FOR EACH ROW
WHEN (OLD.state IN ('succeeded', 'failed') OR NEW.state = 'started')
EXECUTE FUNCTION refuse('how an effect ended cannot change');

CREATE TRIGGER effects_sealed AFTER UPDATE OF receipt ON effects FOR EACH ROW
WHEN (OLD.state IN ('succeeded', 'failed') AND (OLD.receipt IS NULL) <> (NEW.receipt IS NULL))
EXECUTE FUNCTION refuse('the receipt of an effect stays');

-- The others look at the run. They lock it, which costs nothing if the transaction has the lock, as all of ours have: whoever forgets
-- to take it first would otherwise judge by what the run was.

-- A run that waits has nothing to do, or nobody would ever do it. So whoever decides wakes the run, and whoever gives a run back to
-- wait must have applied everything.
CREATE FUNCTION decided_for_a_run_that_goes_on() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM runs WHERE key = NEW.run_key AND status IN ('ready', 'running', 'parked') FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the run waits and was not woken, or is over' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER interrupts_wake AFTER INSERT OR UPDATE OF state ON interrupts FOR EACH ROW
WHEN (NEW.state = 'decided') EXECUTE FUNCTION decided_for_a_run_that_goes_on();

-- The arrows of the state machine. A run that is over stays as it is, and one that is ended from outside has a higher fence.
CREATE FUNCTION run_goes_by_the_arrows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT (OLD.status = 'running'
            OR OLD.status = 'ready' AND NEW.status IN ('running', 'cancelled', 'superseded')
            OR OLD.status IN ('waiting', 'parked') AND NEW.status IN ('ready', 'cancelled', 'superseded')) THEN
        RAISE EXCEPTION 'a run cannot go from this status to that' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.status IN ('cancelled', 'superseded') AND NEW.fence = OLD.fence THEN
        RAISE EXCEPTION 'a run is ended from outside with a higher fence only' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.status = 'waiting' THEN
        PERFORM FROM interrupts WHERE run_key = NEW.key AND NOT applied AND state = 'decided';
        IF FOUND THEN
            RAISE EXCEPTION 'a run with a decision that was not applied cannot wait' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER runs_arrows AFTER UPDATE OF status ON runs FOR EACH ROW
WHEN (NEW.status <> OLD.status) EXECUTE FUNCTION run_goes_by_the_arrows();

CREATE FUNCTION begun_by_the_owner() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM runs WHERE key = NEW.run_key AND status = 'running' AND fence = NEW.fence FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'only the owner of a run begins its effects' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER effects_begin AFTER INSERT ON effects FOR EACH ROW EXECUTE FUNCTION begun_by_the_owner();

-- What was said, decided or begun stays at least as long as somebody may go on from it.
CREATE FUNCTION kept_while_the_run_is_alive() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM runs WHERE key = OLD.run_key AND status IN ('ready', 'running', 'waiting', 'parked');
    IF FOUND THEN
        RAISE EXCEPTION 'the run is alive' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER resumes_kept AFTER DELETE ON resumes FOR EACH ROW EXECUTE FUNCTION kept_while_the_run_is_alive();
CREATE TRIGGER interrupts_kept AFTER DELETE ON interrupts FOR EACH ROW EXECUTE FUNCTION kept_while_the_run_is_alive();
CREATE TRIGGER effects_kept AFTER DELETE ON effects FOR EACH ROW EXECUTE FUNCTION kept_while_the_run_is_alive();
