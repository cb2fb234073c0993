-- What a build with migration 0004 may have left behind.
INSERT INTO checkpoints (account, run, version, updated_at) VALUES
    ('acme', 'demo-1', 3, '2026-11-15 12:00:00+00'),
    ('\x00ff', '\xc328', 1, '2026-11-15 12:00:00+00');
INSERT INTO checkpoint_parts (checkpoint, name, data) VALUES
    ((SELECT id FROM checkpoints WHERE account = 'acme'), 'run', 'kept'),
    ((SELECT id FROM checkpoints WHERE account = 'acme'), '\x00fe', ''),
    ((SELECT id FROM checkpoints WHERE account = 'acme'), convert_to('node/é', 'UTF8'), '\x7b00ff7d');
INSERT INTO runs (account, run, state_key, generation, provider, graph, ref, input, input_digest, status, fence, owner, lease_until, events, places, created_at, updated_at) VALUES
    ('acme', 'demo-1', 'key', 1, 'inproc', 'g', 'sealed ref', 'sealed input', 'd', 'running', 2, 'w', '2026-11-15 12:00:00+00', 6, 3, '2026-11-15 11:00:00+00', '2026-11-15 11:00:00+00'),
    ('\x00ff', '\xc328', '\x00', 1, '', '', NULL, NULL, '', 'running', 1, '', '2026-11-15 12:00:00+00', 2, 0, '2026-11-15 11:00:00+00', '2026-11-15 11:00:00+00');
INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) VALUES
    ('acme', 'ann', 'resume', 'body', 'demo-1', 'accepted', '', '2026-11-15 11:30:00+00'),
    ('acme', 'bob', 'resume', 'body', 'demo-1', 'already_decided', 'yes', '2026-11-15 11:31:00+00');
INSERT INTO interrupts (account, id, run, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline) VALUES
    ('acme', 'yes', 'demo-1', 1, 'node:a', 'approval', 'sealed data', '{}', 'shown', 'action', 3600000000000, '2026-11-15 11:00:00+00', '2026-11-15 12:00:00+00'),
    ('acme', 'open', 'demo-1', 2, 'node:b', 'approval', NULL, NULL, 'shown', '', 0, '2026-11-15 11:00:00+00', NULL),
    ('acme', 'gone', 'demo-1', 3, 'node:c', 'approval', NULL, NULL, 'shown', '', 0, '2026-11-15 11:00:00+00', NULL);
UPDATE interrupts SET state = 'decided', verdict = 'approve', final = 'action', answer = 'sealed answer', decided_by = 'ann', via = 'web', source = 'person',
    decided_at = '2026-11-15 11:30:00+00', resume = 'resume' WHERE id = 'yes';
UPDATE interrupts SET state = 'withdrawn' WHERE id = 'gone';
INSERT INTO effects (account, interrupt, number, run, digest, target_key, fence, started_at) VALUES
    ('acme', 'yes', 1, 'demo-1', 'action', 'k', 2, '2026-11-15 11:40:00+00');
UPDATE runs SET status = 'parked', held = true, owner = NULL, lease_until = NULL, attempts = 25 WHERE account = 'acme';
UPDATE runs SET status = 'completed', owner = NULL, lease_until = NULL, outcome = 'sealed outcome' WHERE account = '\x00ff';
INSERT INTO events (account, run, number, kind, interrupt, at) VALUES
    ('acme', 'demo-1', 1, 'created', '', '2026-11-15 11:00:00+00'),
    ('acme', 'demo-1', 2, 'asked', 'yes', '2026-11-15 11:00:00+00'),
    ('acme', 'demo-1', 3, 'asked', 'open', '2026-11-15 11:00:00+00'),
    ('acme', 'demo-1', 4, 'waiting', '', '2026-11-15 11:00:00+00'),
    ('acme', 'demo-1', 5, 'decided', 'yes', '2026-11-15 11:30:00+00'),
    ('acme', 'demo-1', 6, 'effect_begun', 'yes', '2026-11-15 11:40:00+00');
INSERT INTO once (name, value) VALUES ('name', 'value');
