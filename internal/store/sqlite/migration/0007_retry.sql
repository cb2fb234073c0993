-- A failed run becomes ready again if it is retried, unless its state key has a newer run. Its outcome stays until the
-- next execution ends.

DROP TRIGGER runs_over_stay;

CREATE TRIGGER runs_over_stay BEFORE UPDATE OF ref, outcome, fence, attempts, ready_no, updated_at ON runs
WHEN OLD.status IN ('completed', 'failed', 'cancelled', 'superseded') AND NOT EXISTS (SELECT 1 FROM resealing WHERE one = 1)
 AND NOT (OLD.status = 'failed' AND NEW.status = 'ready' AND NEW.ref IS OLD.ref AND NEW.outcome IS OLD.outcome AND NEW.fence = OLD.fence)
BEGIN SELECT RAISE(ABORT, 'a run that is over stays as it is'); END;

DROP TRIGGER runs_arrows;

CREATE TRIGGER runs_arrows BEFORE UPDATE OF status ON runs
WHEN NOT (NEW.status = OLD.status OR OLD.status = 'running'
  OR OLD.status = 'ready' AND NEW.status IN ('running', 'cancelled', 'superseded')
  OR OLD.status IN ('waiting', 'parked') AND NEW.status IN ('ready', 'cancelled', 'superseded')
  OR OLD.status = 'failed' AND NEW.status = 'ready')
BEGIN SELECT RAISE(ABORT, 'a run cannot go from this status to that'); END;

CREATE TRIGGER runs_retried_if_newest BEFORE UPDATE OF status ON runs
WHEN OLD.status = 'failed' AND NEW.status = 'ready' AND EXISTS (
    SELECT 1 FROM runs AS newer INDEXED BY runs_generations
    WHERE newer.account = OLD.account AND newer.state_key = OLD.state_key AND newer.generation > OLD.generation)
BEGIN SELECT RAISE(ABORT, 'the state key has a newer run'); END;
