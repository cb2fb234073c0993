-- A failed run becomes ready again if it is retried, unless its state key has a newer run. Its outcome stays until the
-- next execution ends.
CREATE OR REPLACE FUNCTION run_goes_by_the_arrows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT (OLD.status = 'running'
            OR OLD.status = 'ready' AND NEW.status IN ('running', 'cancelled', 'superseded')
            OR OLD.status IN ('waiting', 'parked') AND NEW.status IN ('ready', 'cancelled', 'superseded')
            OR OLD.status = 'failed' AND NEW.status = 'ready') THEN
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
    IF OLD.status = 'failed' THEN
        PERFORM FROM runs WHERE handle = NEW.handle AND generation > NEW.generation;
        IF FOUND THEN -- named like the index that rejects it while the newer run is active
            RAISE EXCEPTION 'the state key has a newer run' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'runs_alive';
        END IF;
    END IF;
    RETURN NULL;
END $$;
