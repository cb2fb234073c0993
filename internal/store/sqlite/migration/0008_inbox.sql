-- The inbox lists open requests by kind, and decided requests by the time of their decision.
CREATE INDEX interrupts_of_kind ON interrupts (account, kind, created_at, id) WHERE state = 'pending';
CREATE INDEX interrupts_decided ON interrupts (account, decided_at, id) WHERE state = 'decided';
