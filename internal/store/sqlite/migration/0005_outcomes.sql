-- The outcome of a run is kept once. A receipt notes by which rest of the run it was applied. As long as the run has come to no other, the outcome of
-- the receipt is the run's; the next rest hands it to those who need it, before it writes its own.

ALTER TABLE runs ADD COLUMN rests INTEGER NOT NULL DEFAULT 0; -- how often it came to rest

ALTER TABLE resumes ADD COLUMN rest INTEGER CHECK (rest IS NULL OR rest > 0 AND result = 'accepted');

CREATE TRIGGER runs_rest_on BEFORE UPDATE OF rests ON runs
WHEN NEW.rests <> OLD.rests + 1 OR OLD.status <> 'running' OR NEW.status = 'running'
BEGIN SELECT RAISE(ABORT, 'the rests of a run are counted'); END;

CREATE TRIGGER runs_outcome_handed_over BEFORE UPDATE OF outcome, rests ON runs
WHEN OLD.status IN ('ready', 'running', 'waiting', 'parked') AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1) AND EXISTS (
    SELECT 1 FROM resumes INDEXED BY resumes_of_run
    WHERE account = OLD.account AND run = OLD.run AND rest = OLD.rests AND outcome IS NULL)
BEGIN SELECT RAISE(ABORT, 'a receipt needs the outcome'); END;

CREATE TRIGGER resumes_rest_later BEFORE INSERT ON resumes WHEN NEW.rest IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a receipt is applied by a later rest'); END;

CREATE TRIGGER resumes_rest_once BEFORE UPDATE OF rest ON resumes
WHEN OLD.rest IS NOT NULL OR OLD.outcome IS NOT NULL
  OR NEW.rest IS NOT (SELECT rests + 1 FROM runs WHERE account = NEW.account AND run = NEW.run AND status = 'running')
BEGIN SELECT RAISE(ABORT, 'a receipt is applied once, by the next rest'); END;

CREATE TRIGGER resumes_outcome_of_their_rest BEFORE UPDATE OF outcome ON resumes
WHEN OLD.outcome IS NULL AND OLD.rest IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM runs WHERE account = NEW.account AND run = NEW.run AND rests = OLD.rest AND outcome IS NEW.outcome)
BEGIN SELECT RAISE(ABORT, 'the outcome of a receipt is that of its rest'); END;
