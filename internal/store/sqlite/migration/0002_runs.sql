-- Runs, what they ask, who decided what, which effects were begun, and what happened when; the ports are store.Runs,
-- store.Events and store.Keeping.
--
-- What must never be in the book is refused here, whoever writes: a bug, another build, a script. The code asks first and
-- so does not meet these refusals; the one that it relies on is the foreign key of effects.
--
-- What a caller chooses (accounts, ids, keys, digests) is BLOB, as in checkpoints. Words of the port are TEXT. Times are
-- microseconds since 1970, UTC. All tables have a rowid because they hold sealed values of kilobytes.

-- A row is here while a transaction seals values anew. To the triggers below that means: the bytes of sealed values may be replaced
-- where nothing may change otherwise, and nothing else of these rows can change. Nobody sees the row, because whoever put it
-- there takes it away before the commit.
CREATE TABLE resealing (
    one INTEGER PRIMARY KEY CHECK (one = 1)
) STRICT;

CREATE TABLE runs (
    account      BLOB    NOT NULL,
    run          BLOB    NOT NULL CHECK (length(run) > 0),
    state_key    BLOB    NOT NULL CHECK (length(state_key) > 0),
    generation   INTEGER NOT NULL CHECK (generation > 0),
    provider     BLOB    NOT NULL,
    graph        BLOB    NOT NULL,
    ref          BLOB,
    input        BLOB,
    input_digest BLOB    NOT NULL,
    outcome      BLOB,
    status       TEXT    NOT NULL CHECK (status IN
        ('ready', 'running', 'waiting', 'parked', 'completed', 'failed', 'cancelled', 'superseded')),
    fence        INTEGER NOT NULL CHECK (fence > 0),
    owner        BLOB,
    lease_until  INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    ready_no     INTEGER, -- counts how often runs became ready, for the order of claims
    ready_after  INTEGER, -- ready, but not before
    held         INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)), -- parked until somebody says so, whatever ends
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (account, run),
    CONSTRAINT lease_exactly_while_running CHECK (
        (status = 'running') = (lease_until IS NOT NULL) AND (status = 'running') = (owner IS NOT NULL)),
    CONSTRAINT ready_in_order CHECK (status <> 'ready' OR ready_no IS NOT NULL),
    CONSTRAINT delayed_only_while_ready CHECK (status = 'ready' OR ready_after IS NULL),
    CONSTRAINT held_only_while_parked CHECK (status = 'parked' OR held = 0)
) STRICT;

CREATE UNIQUE INDEX runs_alive ON runs (account, state_key) WHERE status IN ('ready', 'running', 'waiting', 'parked');
CREATE UNIQUE INDEX runs_generations ON runs (account, state_key, generation);
CREATE INDEX runs_numbers ON runs (ready_no) WHERE ready_no IS NOT NULL;
-- Those without a delay come first, in order: nobody has to pass by the delayed ones, however many they are.
CREATE INDEX runs_ready ON runs (ready_after, ready_no) WHERE status = 'ready';
CREATE INDEX runs_leased ON runs (lease_until, run) WHERE status = 'running';
CREATE INDEX runs_listed ON runs (account, created_at, run);
CREATE INDEX runs_listed_by_status ON runs (account, status, created_at, run);
CREATE INDEX runs_over ON runs (updated_at, account, run) WHERE status IN ('completed', 'failed', 'cancelled', 'superseded');

-- INSERT OR REPLACE deletes what is in its way without a word to any trigger but this one.
CREATE TRIGGER runs_written_once BEFORE INSERT ON runs
WHEN EXISTS (SELECT 1 FROM runs WHERE account = NEW.account AND run = NEW.run)
  OR EXISTS (SELECT 1 FROM runs INDEXED BY runs_alive WHERE account = NEW.account AND state_key = NEW.state_key
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run exists, or one of its state key is alive'); END;

CREATE TRIGGER runs_named_once
BEFORE UPDATE OF account, run, state_key, generation, provider, graph, input_digest, created_at ON runs
BEGIN SELECT RAISE(ABORT, 'what a run began with cannot change'); END;

CREATE TRIGGER runs_input_once BEFORE UPDATE OF input ON runs
WHEN NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'what a run began with cannot change'); END;

CREATE TRIGGER runs_over_stay BEFORE UPDATE OF ref, outcome, fence, attempts, ready_no, updated_at ON runs
WHEN OLD.status IN ('completed', 'failed', 'cancelled', 'superseded') AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'a run that is over stays as it is'); END;

CREATE TRIGGER runs_resealed BEFORE UPDATE OF ref, input, outcome ON runs
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
 AND ((OLD.ref IS NULL) <> (NEW.ref IS NULL) OR (OLD.input IS NULL) <> (NEW.input IS NULL) OR (OLD.outcome IS NULL) <> (NEW.outcome IS NULL))
BEGIN SELECT RAISE(ABORT, 'only what is there can be sealed anew'); END;

CREATE TRIGGER runs_only_resealed
BEFORE UPDATE OF status, fence, owner, lease_until, attempts, ready_no, ready_after, held, updated_at ON runs
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'whoever seals anew changes nothing else'); END;

-- The arrows of the state machine. A run that is over stays as it is.
CREATE TRIGGER runs_arrows BEFORE UPDATE OF status ON runs
WHEN NOT (NEW.status = OLD.status OR OLD.status = 'running'
  OR OLD.status = 'ready' AND NEW.status IN ('running', 'cancelled', 'superseded')
  OR OLD.status IN ('waiting', 'parked') AND NEW.status IN ('ready', 'cancelled', 'superseded'))
BEGIN SELECT RAISE(ABORT, 'a run cannot go from this status to that'); END;

-- A new owner, and an end from outside, raise the fence; nothing lowers it.
CREATE TRIGGER runs_fenced BEFORE UPDATE OF status, fence, owner ON runs
WHEN NEW.fence < OLD.fence
  OR NEW.fence = OLD.fence AND (NEW.status = 'running' AND (OLD.status <> 'running' OR NEW.owner IS NOT OLD.owner)
                                OR NEW.status <> OLD.status AND NEW.status IN ('cancelled', 'superseded'))
BEGIN SELECT RAISE(ABORT, 'a run changes hands with a higher fence only'); END;

CREATE TABLE resumes (
    account    BLOB    NOT NULL,
    actor      BLOB    NOT NULL,
    id         BLOB    NOT NULL,
    body       BLOB    NOT NULL,
    run        BLOB    NOT NULL, -- as the decision named it; there may be none
    result     TEXT    NOT NULL CHECK (result IN
        ('accepted', 'already_decided', 'expired', 'superseded', 'digest_mismatch', 'not_found')),
    interrupt  BLOB    NOT NULL, -- the one that a refusal is about
    created_at INTEGER NOT NULL,
    outcome    BLOB,             -- of the execution that applied it
    PRIMARY KEY (account, actor, id),
    CONSTRAINT refusal_names_interrupt CHECK (result <> 'accepted' OR length(interrupt) = 0),
    CONSTRAINT outcome_of_accepted CHECK (result = 'accepted' OR outcome IS NULL)
) STRICT;

CREATE INDEX resumes_of_run ON resumes (account, run);

CREATE TRIGGER resumes_written_once BEFORE INSERT ON resumes
WHEN EXISTS (SELECT 1 FROM resumes WHERE account = NEW.account AND actor = NEW.actor AND id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the resume id was answered'); END;

CREATE TRIGGER resumes_answered_once BEFORE UPDATE OF account, actor, id, body, run, result, interrupt, created_at ON resumes
BEGIN SELECT RAISE(ABORT, 'a receipt cannot change'); END;

CREATE TRIGGER resumes_outcome_once BEFORE UPDATE OF outcome ON resumes
WHEN OLD.outcome IS NOT NULL AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'the outcome of a resume cannot change'); END;

CREATE TRIGGER resumes_resealed BEFORE UPDATE OF outcome ON resumes
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1) AND (OLD.outcome IS NULL) <> (NEW.outcome IS NULL)
BEGIN SELECT RAISE(ABORT, 'only what is there can be sealed anew'); END;

CREATE TABLE interrupts (
    account       BLOB    NOT NULL,
    id            BLOB    NOT NULL,
    run           BLOB    NOT NULL,
    place         INTEGER NOT NULL CHECK (place > 0), -- the order in which those of a run became visible
    address       BLOB    NOT NULL,
    kind          BLOB    NOT NULL,
    data          BLOB,
    answer_schema BLOB,
    shown         BLOB    NOT NULL,
    action        BLOB    NOT NULL, -- empty if there is nothing to approve
    timeout       INTEGER NOT NULL, -- nanoseconds, as asked; deadline is what counts
    created_at    INTEGER NOT NULL,
    deadline      INTEGER,
    state         TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'decided', 'withdrawn')),
    verdict       TEXT    CHECK (verdict IN ('approve', 'reject', 'answer', 'expire')),
    final         BLOB,
    answer        BLOB,
    decided_by    BLOB,
    via           BLOB,
    source        TEXT    CHECK (source IN ('person', 'clock', 'policy')),
    decided_at    INTEGER,
    resume        BLOB,
    applied       INTEGER NOT NULL DEFAULT 0 CHECK (applied IN (0, 1)),
    PRIMARY KEY (account, id),
    FOREIGN KEY (account, run) REFERENCES runs (account, run),
    -- A person's decision has a receipt.
    FOREIGN KEY (account, decided_by, resume) REFERENCES resumes (account, actor, id),
    CONSTRAINT verdict_exactly_when_decided CHECK (
        (state = 'decided') = (verdict IS NOT NULL) AND (state = 'decided') = (final IS NOT NULL)
        AND (state = 'decided') = (decided_by IS NOT NULL) AND (state = 'decided') = (via IS NOT NULL)
        AND (state = 'decided') = (source IS NOT NULL) AND (state = 'decided') = (decided_at IS NOT NULL)),
    CONSTRAINT answer_of_decided CHECK (state = 'decided' OR answer IS NULL),
    CONSTRAINT receipt_for_a_person CHECK ((source IS 'person') = (resume IS NOT NULL)),
    CONSTRAINT clock_only_expires CHECK (source IS NOT 'clock' OR verdict IS 'expire' AND length(final) = 0),
    CONSTRAINT clock_only_after_deadline CHECK (source IS NOT 'clock' OR deadline IS NOT NULL AND decided_at >= deadline),
    CONSTRAINT others_only_before_deadline CHECK (source IS NULL OR source = 'clock' OR deadline IS NULL OR decided_at < deadline),
    CONSTRAINT approve_says_what CHECK (verdict IS NOT 'approve' OR length(final) > 0 OR length(action) = 0),
    CONSTRAINT applied_after_decided CHECK (applied = 0 OR state = 'decided')
) STRICT;

-- What effects refer to. Unique already by the primary key; a foreign key wants it said.
CREATE UNIQUE INDEX interrupts_verdicts ON interrupts (account, id, run, verdict, final);
CREATE UNIQUE INDEX interrupts_of_run ON interrupts (account, run, place);
-- What the next owner or the next rest may have to look at; a long run leaves most of its interrupts behind.
CREATE INDEX interrupts_unapplied ON interrupts (account, run, place) WHERE applied = 0;
CREATE INDEX interrupts_resumed ON interrupts (account, decided_by, resume) WHERE resume IS NOT NULL;
CREATE INDEX interrupts_due ON interrupts (deadline) WHERE state = 'pending' AND deadline IS NOT NULL;

CREATE TRIGGER interrupts_written_once BEFORE INSERT ON interrupts
WHEN EXISTS (SELECT 1 FROM interrupts WHERE account = NEW.account AND id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an interrupt becomes visible once'); END;

-- What is decided from the beginning is the word of a policy for what the owner is about to do.
CREATE TRIGGER interrupts_allowed BEFORE INSERT ON interrupts
WHEN NEW.state <> 'pending' AND NOT (
    NEW.state = 'decided' AND NEW.source IS 'policy' AND NEW.verdict IS 'approve' AND NEW.applied = 1
    AND NEW.final IS NEW.action AND length(NEW.final) > 0 AND NEW.deadline IS NULL AND NEW.answer IS NULL
    AND EXISTS (SELECT 1 FROM runs WHERE account = NEW.account AND run = NEW.run AND status = 'running'))
BEGIN SELECT RAISE(ABORT, 'only a policy decides what was never asked'); END;

CREATE TRIGGER interrupts_asked_once
BEFORE UPDATE OF account, id, run, place, address, kind, answer_schema, shown, action, timeout, created_at, deadline
ON interrupts
BEGIN SELECT RAISE(ABORT, 'what was asked cannot change'); END;

CREATE TRIGGER interrupts_data_once BEFORE UPDATE OF data ON interrupts
WHEN NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'what was asked cannot change'); END;

CREATE TRIGGER interrupts_decided_once
BEFORE UPDATE OF state, verdict, final, answer, decided_by, via, source, decided_at, resume ON interrupts
WHEN (OLD.state = 'decided' OR OLD.state = 'withdrawn' AND NEW.state = 'decided') AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'the interrupt was decided or withdrawn'); END;

CREATE TRIGGER interrupts_resealed BEFORE UPDATE OF data, answer ON interrupts
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
 AND ((OLD.data IS NULL) <> (NEW.data IS NULL) OR (OLD.answer IS NULL) <> (NEW.answer IS NULL))
BEGIN SELECT RAISE(ABORT, 'only what is there can be sealed anew'); END;

CREATE TRIGGER interrupts_only_resealed
BEFORE UPDATE OF state, verdict, final, decided_by, via, source, decided_at, resume, applied ON interrupts
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'whoever seals anew changes nothing else'); END;

CREATE TRIGGER interrupts_applied_once BEFORE UPDATE OF applied ON interrupts WHEN OLD.applied = 1
BEGIN SELECT RAISE(ABORT, 'a decision is applied once'); END;

-- A run that waits has nothing to do, or nobody would ever do it. So whoever decides wakes the run first, and whoever
-- gives a run back to wait must have applied everything.
CREATE TRIGGER interrupts_wake_first BEFORE UPDATE OF state ON interrupts
WHEN NEW.state = 'decided' AND NOT EXISTS (
    SELECT 1 FROM runs WHERE account = NEW.account AND run = NEW.run AND status IN ('ready', 'running', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run waits and was not woken, or is over'); END;

CREATE TRIGGER runs_wait_for_nothing_decided BEFORE UPDATE OF status ON runs
WHEN NEW.status = 'waiting' AND EXISTS (
    SELECT 1 FROM interrupts INDEXED BY interrupts_unapplied
    WHERE account = NEW.account AND run = NEW.run AND applied = 0 AND state = 'decided')
BEGIN SELECT RAISE(ABORT, 'a run with a decision that was not applied cannot wait'); END;

CREATE TABLE effects (
    account    BLOB    NOT NULL,
    interrupt  BLOB    NOT NULL,
    number     INTEGER NOT NULL CHECK (number > 0),
    run        BLOB    NOT NULL,
    verdict    TEXT    NOT NULL DEFAULT 'approve' CHECK (verdict = 'approve'),
    digest     BLOB    NOT NULL CHECK (length(digest) > 0),
    target_key BLOB    NOT NULL,
    fence      INTEGER NOT NULL,
    state      TEXT    NOT NULL DEFAULT 'started' CHECK (state IN ('started', 'succeeded', 'failed', 'indeterminate')),
    receipt    BLOB,
    error      BLOB    NOT NULL DEFAULT x'',
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (account, interrupt, number),
    -- No line without an approve of exactly this, by this account, in this run.
    FOREIGN KEY (account, interrupt, run, verdict, digest) REFERENCES interrupts (account, id, run, verdict, final),
    CONSTRAINT ended_unless_started CHECK ((state = 'started') = (ended_at IS NULL))
) STRICT;

CREATE INDEX effects_in_doubt ON effects (account, run) WHERE state IN ('started', 'indeterminate');

CREATE TRIGGER effects_written_once BEFORE INSERT ON effects
WHEN NEW.state <> 'started' OR EXISTS (
    SELECT 1 FROM effects WHERE account = NEW.account AND interrupt = NEW.interrupt AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'an effect is begun once'); END;

CREATE TRIGGER effects_begun_by_owner BEFORE INSERT ON effects
WHEN NOT EXISTS (
    SELECT 1 FROM runs WHERE account = NEW.account AND run = NEW.run AND status = 'running' AND fence = NEW.fence)
BEGIN SELECT RAISE(ABORT, 'only the owner of a run begins its effects'); END;

CREATE TRIGGER effects_same_line
BEFORE UPDATE OF account, interrupt, number, run, verdict, digest, target_key, fence, started_at ON effects
BEGIN SELECT RAISE(ABORT, 'what was begun cannot change'); END;

CREATE TRIGGER effects_end_once BEFORE UPDATE OF state, receipt, error, ended_at ON effects
WHEN (OLD.state IN ('succeeded', 'failed') OR NEW.state = 'started') AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'how an effect ended cannot change'); END;

CREATE TRIGGER effects_resealed BEFORE UPDATE OF receipt ON effects
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1) AND (OLD.receipt IS NULL) <> (NEW.receipt IS NULL)
BEGIN SELECT RAISE(ABORT, 'only what is there can be sealed anew'); END;

CREATE TRIGGER effects_only_resealed BEFORE UPDATE OF state, error, ended_at ON effects
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'whoever seals anew changes nothing else'); END;

-- Ids are never used twice, and a transaction is the only writer until it commits: whoever reads behind an id misses nothing.
CREATE TABLE events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    account   BLOB    NOT NULL,
    run       BLOB    NOT NULL,
    number    INTEGER NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN
        ('created', 'asked', 'decided', 'expired', 'withdrawn', 'effect_begun', 'effect_ended',
         'waiting', 'parked', 'completed', 'failed', 'cancelled', 'superseded')),
    interrupt BLOB    NOT NULL, -- empty if it is about none
    at        INTEGER NOT NULL,
    UNIQUE (account, run, number),
    FOREIGN KEY (account, run) REFERENCES runs (account, run)
) STRICT;

CREATE INDEX events_feed ON events (account); -- and the id, which is the rowid

-- The numbers of a run come from the last one. A counter in the row of the run would write all of that row again, sealed
-- kilobytes included.
CREATE TRIGGER events_in_order BEFORE INSERT ON events
WHEN NEW.number IS NOT 1 + coalesce((SELECT max(number) FROM events WHERE account = NEW.account AND run = NEW.run), 0)
  OR EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'events are numbered without a gap'); END;

CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'what happened cannot change'); END;

CREATE TABLE once (
    name  BLOB NOT NULL CHECK (length(name) > 0),
    value BLOB NOT NULL,
    PRIMARY KEY (name)
) STRICT;

CREATE TRIGGER once_written_once BEFORE INSERT ON once WHEN EXISTS (SELECT 1 FROM once WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'the name has its value'); END;

CREATE TRIGGER once_named_once BEFORE UPDATE OF name ON once
BEGIN SELECT RAISE(ABORT, 'the name has its value'); END;

CREATE TRIGGER once_kept_once BEFORE UPDATE OF value ON once
WHEN NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'the name has its value'); END;

CREATE TRIGGER once_kept BEFORE DELETE ON once
BEGIN SELECT RAISE(ABORT, 'the name has its value'); END;

-- Everything stays at least as long as somebody may go on from it. A run stays as long as its events.
CREATE TRIGGER interrupts_kept BEFORE DELETE ON interrupts
WHEN EXISTS (SELECT 1 FROM runs WHERE account = OLD.account AND run = OLD.run
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run is alive'); END;

CREATE TRIGGER resumes_kept BEFORE DELETE ON resumes
WHEN EXISTS (SELECT 1 FROM runs WHERE account = OLD.account AND run = OLD.run
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run is alive'); END;

CREATE TRIGGER effects_kept BEFORE DELETE ON effects
WHEN EXISTS (SELECT 1 FROM runs WHERE account = OLD.account AND run = OLD.run
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run is alive'); END;

CREATE TRIGGER events_kept BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM runs WHERE account = OLD.account AND run = OLD.run
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run is alive'); END;
