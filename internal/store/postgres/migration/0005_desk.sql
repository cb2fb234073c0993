-- What people see of the runs of an account, and what programs sign in with; the ports are store.Inbox and store.Credentials.

-- An account may be longer than what fits into an index, hence its hash.
CREATE INDEX interrupts_asked ON interrupts (sha256(account), created_at);
-- Open ones are few among many.
CREATE INDEX interrupts_pending ON interrupts (sha256(account), created_at) WHERE state = 'pending';
-- The condition on the time holds always. It keeps the planner from taking this index for what asks for one account.
CREATE INDEX interrupts_waiting ON interrupts (created_at) WHERE state = 'pending' AND created_at > '-infinity';

CREATE TABLE credentials (
    id         bytea       PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 1024),
    account    bytea       NOT NULL,
    name       bytea       NOT NULL,
    role       bytea       NOT NULL,
    hash       bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

CREATE INDEX credentials_of_account ON credentials (sha256(account), created_at);

CREATE FUNCTION credential_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.revoked_at IS NOT NULL THEN
            RAISE EXCEPTION 'a credential is good when it is made' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSIF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
        OR (NEW.id, NEW.account, NEW.name, NEW.role, NEW.hash, NEW.created_at) <> (OLD.id, OLD.account, OLD.name, OLD.role, OLD.hash, OLD.created_at)
        OR NEW.expires_at IS DISTINCT FROM OLD.expires_at THEN
        RAISE EXCEPTION 'a credential can only be revoked, once' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER credentials_stay BEFORE INSERT OR UPDATE ON credentials FOR EACH ROW EXECUTE FUNCTION credential_stays();
