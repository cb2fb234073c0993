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
	"github.com/fermata-go/fermata/store"
)

// What can go wrong besides the errors of package store. They come wrapped with the operation and the names of database and
// schema; test for them with errors.Is. None of them holds the password.
var (
	// ErrConfig says that Open was given something that cannot work, or that a pooler on the way does not pass on what a connection has to have. Nothing was
	// changed.
	ErrConfig = errors.New("bad configuration")

	// ErrDenied says that the server refuses this user: an unknown name, a wrong password, or a right that is missing.
	// Nothing was changed.
	ErrDenied = errors.New("access denied")

	// ErrForeign says that the schema is there but was not made by Fermata. Nothing was changed; choose another name.
	ErrForeign = errors.New("not a schema of Fermata")

	// ErrNewer says that a newer build of Fermata has already changed the schema. Run that build, or restore a backup from
	// before the upgrade.
	ErrNewer = migration.ErrNewer

	// ErrDrift says that a migration which the database remembers is not the one this build carries: the two come from
	// different sources. Nothing was changed; find out which build made the schema.
	ErrDrift = migration.ErrDrift

	// ErrLocked says that somebody else kept a lock for longer than Config.LockTimeout, or waits for one of ours. Nothing was changed;
	// trying again later is safe.
	ErrLocked = errors.New("locked by another transaction")

	// ErrTimeout says that there was no answer within the time that Config.Timeout allows. Usually the server has given up and changed
	// nothing, but the answer may also have been lost on the way.
	ErrTimeout = errors.New("no answer in time")

	// ErrFull says that the server has no room for the write. Nothing was changed; it will succeed once there is room.
	ErrFull = store.ErrFull

	// ErrDisk says that the disk of the server fails. Whether a write was done is not known. (Of a quota that is used up PostgreSQL says no more than that something is wrong.)
	ErrDisk = store.ErrDisk

	// ErrTooLarge says that something is larger than PostgreSQL takes in one message. Nothing was changed.
	ErrTooLarge = errors.New("too big")

	// ErrInterruptOfAnotherRun says that an interrupt of this id was asked by another run of the account. Nothing was changed.
	ErrInterruptOfAnotherRun = errors.New("another run has an interrupt of this id")

	// ErrUnavailable says that the server cannot be reached, is starting or stopping, takes no writes, or that the
	// connection was lost. Whether a save was applied is unknown.
	ErrUnavailable = errors.New("database is not available")

	// ErrClosed says that the Store was closed.
	ErrClosed = errors.New("store is closed")
)

// wrap says what was being done to which schema.
func wrap(op, name string, err error) error {
	kind := classify(err)
	// The error of a failed connect carries the whole configuration, with the password; its cause does not.
	if connectErr, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connectErr.Unwrap() //mutate:postgres-password-hidden
	}
	if kind != nil {
		return fmt.Errorf("postgres: %s %s: %w: %w", op, name, kind, err)
	}
	return fmt.Errorf("postgres: %s %s: %w", op, name, err)
}

// classify returns the error of this package that an error of the driver stands for, or nil.
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

// violates says whether the server refused something by a constraint of this name.
func violates(err error, constraint string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.ConstraintName == constraint
}

// isBroken says whether a connection could not be made or was lost.
func isBroken(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the latter looks like an error of the network
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

// withContext makes sure that a call which failed because its context ended says so and nothing else: the server reports a
// cancelled statement, the driver a lost connection.
func withContext(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		return fmt.Errorf("%w: %v", cause, err) // %v: that a context has ended is our business, not the caller's
	}
	return fmt.Errorf("%w: %v", ctx.Err(), err)
}
