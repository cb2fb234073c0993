package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/store"
)

// Errors in addition to those of package store. They are wrapped with the operation and the names
// of database and schema; test for them with errors.Is. None of them contains the password.
var (
	// ErrConfig is returned by Open for an invalid configuration, or if a pooler does not forward
	// required settings. Nothing was changed.
	ErrConfig = errors.New("invalid configuration")

	// ErrDenied is returned if the server rejects the user: an unknown name, a wrong password, or a
	// missing privilege. Nothing was changed.
	ErrDenied = errors.New("access denied")

	// ErrForeign is returned for a schema that was not created by Fermata. Nothing was changed;
	// choose another name.
	ErrForeign = errors.New("not a schema of Fermata")

	// ErrNewer is returned if a newer build of Fermata has changed the schema. Use that build, or
	// restore a backup from before the upgrade.
	ErrNewer = migration.ErrNewer

	// ErrDrift is returned if a migration recorded in the database differs from that of this build,
	// so the two come from different sources. Nothing was changed. Find out which build created the
	// schema.
	ErrDrift = migration.ErrDrift

	// ErrLocked is returned if another transaction held a lock for longer than Config.LockTimeout,
	// or after a deadlock. Nothing was changed; a retry is safe.
	ErrLocked = errors.New("locked by another transaction")

	// ErrTimeout is returned if there was no response within the time that Config.Timeout allows.
	// Usually the server has given up and changed nothing, but the response may also have been
	// lost.
	ErrTimeout = errors.New("timeout")

	// ErrFull is returned if the server has no space for the write. Nothing was changed; it
	// succeeds once there is space.
	ErrFull = store.ErrFull

	// ErrDisk is returned if the disk of the server fails. The outcome of the write is unknown.
	// (PostgreSQL reports an exhausted quota as an unspecific error.)
	ErrDisk = store.ErrDisk

	// ErrTooLarge is returned for a value larger than PostgreSQL accepts in one message. Nothing
	// was changed.
	ErrTooLarge = errors.New("value is too large")

	// ErrInterruptOfAnotherRun is returned if another run of the account has an interrupt with this
	// id. Nothing was changed.
	ErrInterruptOfAnotherRun = errors.New("another run has an interrupt with this id")

	// ErrUnavailable is returned if the server cannot be reached, is starting or stopping, accepts
	// no writes, or if the connection was lost. The outcome of a save is unknown.
	ErrUnavailable = errors.New("database is not available")

	// ErrClosed is returned if the Store was closed.
	ErrClosed = errors.New("store is closed")
)

// wrap adds the operation and the name of the schema.
func wrap(op, name string, err error) error {
	kind := classify(err)
	// The error of a failed connection contains the whole configuration, with the password; its
	// cause does not.
	if connectErr, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connectErr.Unwrap() //mutate:postgres-password-hidden
	}
	if kind != nil {
		return fmt.Errorf("postgres: %s %s: %w: %w", op, name, kind, err)
	}
	return fmt.Errorf("postgres: %s %s: %w", op, name, err)
}

// classify returns the error of this package for an error of the driver, or nil.
func classify(err error) error {
	switch state := sqlState(err); state {
	case "":
		if isBroken(err) && !errors.Is(err, ErrConfig) {
			return ErrUnavailable
		}
	case "42501", "28000", "28P01":
		return ErrDenied
	case "55P03", "40P01":
		return ErrLocked
	case "57014":
		return ErrTimeout
	case "53100":
		return ErrFull
	case "58030":
		return ErrDisk
	case "54000":
		return ErrTooLarge
	case "25006", "25P03", "53300", "57P01", "57P02", "57P03", "57P05":
		return ErrUnavailable
	default:
		if strings.HasPrefix(state, "08") {
			return ErrUnavailable
		}
	}
	return nil
}

// sqlState returns the code of an error that the server reported, or "".
func sqlState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// violates reports whether the server rejected a statement by a constraint with this name.
func violates(err error, constraint string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.ConstraintName == constraint
}

// isBroken reports whether a connection could not be opened or was lost.
func isBroken(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // a context error looks like a network error
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// withContext makes a call that failed because its context ended return only the error of the
// context. The server reports a cancelled statement, the driver a lost connection.
func withContext(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		// %v, because the internal context is not the caller's
		return fmt.Errorf("%w: %v", cause, err)
	}
	return fmt.Errorf("%w: %v", ctx.Err(), err)
}
