-- The outcome of a run is kept once. A receipt notes by which rest of the run it was applied. As long as the run has come to no other, the outcome of
-- the receipt is the run's; the next rest hands it to those who need it, together with its own.

ALTER TABLE runs ADD COLUMN rests integer NOT NULL DEFAULT 0; -- how often it came to rest
ALTER TABLE resumes ADD COLUMN rest integer, ADD CONSTRAINT applied_if_accepted CHECK (rest IS NULL OR result = 'accepted');

CREATE TRIGGER runs_rest_on AFTER UPDATE OF rests ON runs FOR EACH ROW
WHEN (NEW.rests <> OLD.rests + 1 OR OLD.status <> 'running' OR NEW.status = 'running') EXECUTE FUNCTION refuse('the rests of a run are counted');

CREATE TRIGGER resumes_rest_later AFTER INSERT ON resumes FOR EACH ROW
WHEN (NEW.rest IS NOT NULL) EXECUTE FUNCTION refuse('a receipt is applied by a later rest');

CREATE TRIGGER resumes_rest_once AFTER UPDATE OF rest ON resumes FOR EACH ROW
WHEN (OLD.rest IS NOT NULL OR OLD.outcome IS NOT NULL) EXECUTE FUNCTION refuse('a receipt is applied once');

-- A build that knows nothing of this is refused where it would take an outcome from a receipt. Whoever seals an outcome anew does not change the status.
CREATE FUNCTION outcome_is_handed_over() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM resumes WHERE run_key = NEW.key AND rest = OLD.rests AND outcome IS NULL;
    IF FOUND THEN
        RAISE EXCEPTION 'a receipt needs the outcome' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER runs_outcome_handed_over AFTER UPDATE OF outcome, rests ON runs FOR EACH ROW
WHEN (OLD.status = 'running' AND NEW.status <> 'running' AND OLD.outcome IS NOT NULL) EXECUTE FUNCTION outcome_is_handed_over();
