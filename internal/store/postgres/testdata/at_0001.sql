-- What a build with migration 0001 may have left behind.
INSERT INTO checkpoints (account, run, version, updated_at) VALUES
    ('acme', 'demo-1', 3, '2026-11-15 12:00:00+00'),
    ('\x00ff', '\xc328', 1, '2026-11-15 12:00:00+00');
INSERT INTO checkpoint_parts (checkpoint, name, data) VALUES
    ((SELECT id FROM checkpoints WHERE account = 'acme'), 'run', 'kept'),
    ((SELECT id FROM checkpoints WHERE account = 'acme'), '\x00fe', ''),
    ((SELECT id FROM checkpoints WHERE account = 'acme'), convert_to('node/é', 'UTF8'), '\x7b00ff7d');
