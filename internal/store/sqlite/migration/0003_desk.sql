-- What people see of the runs of an account, and what programs sign in with; the ports are store.Inbox and store.Credentials.

CREATE INDEX interrupts_asked ON interrupts (account, created_at, id);
-- Open ones are few among many.
CREATE INDEX interrupts_pending ON interrupts (account, created_at, id) WHERE state = 'pending';
CREATE INDEX interrupts_waiting ON interrupts (created_at) WHERE state = 'pending';

CREATE TABLE credentials (
    id         BLOB    PRIMARY KEY CHECK (length(id) > 0),
    account    BLOB    NOT NULL,
    name       BLOB    NOT NULL,
    role       BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

CREATE INDEX credentials_of_account ON credentials (account, created_at);

CREATE TRIGGER credentials_written_once BEFORE INSERT ON credentials
WHEN NEW.revoked_at IS NOT NULL OR EXISTS (SELECT 1 FROM credentials WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a credential is made once, and good then'); END;

CREATE TRIGGER credentials_stay BEFORE UPDATE ON credentials
WHEN OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL OR NEW.id <> OLD.id OR NEW.account <> OLD.account OR NEW.name <> OLD.name
  OR NEW.role <> OLD.role OR NEW.hash <> OLD.hash OR NEW.created_at <> OLD.created_at OR NEW.expires_at IS NOT OLD.expires_at
BEGIN SELECT RAISE(ABORT, 'a credential can only be revoked, once'); END;
