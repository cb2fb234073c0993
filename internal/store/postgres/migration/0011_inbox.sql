-- The inbox lists open requests by kind, and decided requests by the time of their decision. The conditions keep the planner from taking
-- these indexes for statements that look for the interrupts of one run.
CREATE INDEX interrupts_of_kind ON interrupts (sha256(account), sha256(kind), created_at) WHERE state = 'pending' AND created_at > '-infinity';
CREATE INDEX interrupts_decided ON interrupts (sha256(account), decided_at) WHERE decided_at IS NOT NULL;
