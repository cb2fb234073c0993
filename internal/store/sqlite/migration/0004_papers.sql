-- What people need to decide, and the log of what was done; the ports are store.Desk and store.AuditLog.

CREATE TABLE papers (
    account    BLOB    NOT NULL,
    kind       TEXT    NOT NULL CHECK (length(kind) > 0),
    id         BLOB    NOT NULL CHECK (length(id) > 0),
    run        BLOB    NOT NULL, -- empty if it belongs to none
    revision   INTEGER NOT NULL CHECK (revision > 0),
    body       BLOB,
    facts      TEXT    CHECK (json_type(facts) = 'object'), -- what may be counted
    next_at    INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (account, kind, id)
) STRICT;

CREATE INDEX papers_of_run ON papers (account, run, kind, id) WHERE length(run) > 0;
CREATE INDEX papers_due ON papers (kind, next_at, account, id) WHERE next_at IS NOT NULL;

CREATE TRIGGER papers_written_once BEFORE INSERT ON papers
WHEN NEW.revision <> 1 OR EXISTS (SELECT 1 FROM papers WHERE account = NEW.account AND kind = NEW.kind AND id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a paper is made once, and with revision 1'); END;

CREATE TRIGGER papers_named_once BEFORE UPDATE OF account, kind, id, run, created_at ON papers
BEGIN SELECT RAISE(ABORT, 'what a paper is cannot change'); END;

CREATE TRIGGER papers_revised BEFORE UPDATE OF revision, body, facts, next_at, updated_at ON papers
WHEN NEW.revision <> OLD.revision + 1 AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'a paper changes with its revision'); END;

CREATE TRIGGER papers_resealed BEFORE UPDATE OF body ON papers
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1) AND (OLD.body IS NULL) <> (NEW.body IS NULL)
BEGIN SELECT RAISE(ABORT, 'only what is there can be sealed anew'); END;

CREATE TRIGGER papers_only_resealed BEFORE UPDATE OF revision, facts, next_at, updated_at ON papers
WHEN EXISTS (SELECT 1 FROM resealing WHERE one = 1)
BEGIN SELECT RAISE(ABORT, 'whoever seals anew changes nothing else'); END;

CREATE TRIGGER papers_kept BEFORE DELETE ON papers
WHEN length(OLD.run) = 0 OR EXISTS (SELECT 1 FROM runs WHERE account = OLD.account AND run = OLD.run
             AND status IN ('ready', 'running', 'waiting', 'parked'))
BEGIN SELECT RAISE(ABORT, 'the run is alive, or the paper belongs to none'); END;

-- The interrupt of a request is decided together with the request, or not at all: whoever decides has seen the request as it is. The
-- change of the request comes first, and has the time of the transaction, as the decision has.
CREATE TRIGGER interrupts_with_their_requests BEFORE UPDATE OF state ON interrupts
WHEN NEW.state = 'decided' AND NEW.source = 'person' AND EXISTS (
    SELECT 1 FROM papers WHERE account = NEW.account AND kind = 'request' AND id = NEW.id AND updated_at <> NEW.decided_at)
BEGIN SELECT RAISE(ABORT, 'the request was not changed with the decision'); END;

-- The deadline of an interrupt moves with its request, as long as it is pending.
DROP TRIGGER interrupts_asked_once;

CREATE TRIGGER interrupts_asked_once
BEFORE UPDATE OF account, id, run, place, address, kind, answer_schema, shown, action, timeout, created_at ON interrupts
BEGIN SELECT RAISE(ABORT, 'what was asked cannot change'); END;

CREATE TRIGGER interrupts_deadline_while_pending BEFORE UPDATE OF deadline ON interrupts
WHEN OLD.state <> 'pending' OR NEW.deadline IS NULL
BEGIN SELECT RAISE(ABORT, 'only an interrupt that is pending has a deadline to move'); END;

-- Each line names the one before it by its hash, which is kept beside it.
CREATE TABLE audit (
    account BLOB    NOT NULL,
    seq     INTEGER NOT NULL CHECK (seq > 0),
    raw     BLOB    NOT NULL,
    hash    BLOB    NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (account, seq)
) STRICT;

CREATE TRIGGER audit_in_order BEFORE INSERT ON audit
WHEN NEW.seq IS NOT 1 + coalesce((SELECT max(seq) FROM audit WHERE account = NEW.account), 0)
BEGIN SELECT RAISE(ABORT, 'lines are numbered without a gap'); END;

CREATE TRIGGER audit_linked BEFORE INSERT ON audit
WHEN instr(NEW.raw, CAST(format('{"v":1,"seq":%d,"prev":"%s","time":"', NEW.seq, coalesce(
    (SELECT lower(hex(hash)) FROM audit WHERE account = NEW.account AND seq = NEW.seq - 1), format('%064d', 0))) AS BLOB)) IS NOT 1
BEGIN SELECT RAISE(ABORT, 'each line names the one before it'); END;

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'what was recorded cannot change'); END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'what was recorded is kept'); END;
