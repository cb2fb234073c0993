package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/store"
)

// Errors in addition to those of package store. They are wrapped with the operation and the name of
// the file; test for them with errors.Is.
var (
	// ErrPath is returned by Open for an argument that is not the path of a file. Nothing was
	// changed.
	ErrPath = errors.New("not the path of a database file")

	// ErrForeign is returned for a file that was not created by Fermata. It was not changed. Choose
	// another path.
	ErrForeign = errors.New("not a Fermata database")

	// ErrNewer is returned if a newer build of Fermata has changed the schema. Use that build, or
	// restore a backup from before the upgrade.
	ErrNewer = migration.ErrNewer

	// ErrDrift is returned if a migration recorded in the database differs from that of this build,
	// so the two come from different sources. Nothing was changed. Find out which build created the
	// file.
	ErrDrift = migration.ErrDrift

	// ErrLocked is returned if another process held the write lock for too long. Nothing was
	// changed; a retry is safe.
	ErrLocked = errors.New("database is locked by another process")

	// ErrFull is returned if there is no space for the write. Nothing was changed; it succeeds once
	// there is space.
	ErrFull = store.ErrFull

	// ErrDisk is returned if the disk fails. The outcome of the write is unknown.
	ErrDisk = store.ErrDisk

	// ErrReplaced is returned if the file was deleted, moved or replaced while it was open. Nothing
	// was changed. Close the Store and restore the file: the content of the old file is lost once
	// no process has it open. If a side file (-wal, -shm) is affected, do not open the file
	// elsewhere before the Store is closed. Close writes the content of the WAL into the file; a
	// killed process loses it.
	ErrReplaced = errors.New("a file of the database was deleted, moved or replaced while it was open")

	// ErrCorrupt is returned if the file is damaged. Restore a backup.
	ErrCorrupt = errors.New("database file is damaged")

	// ErrTooLarge is returned for a value larger than SQLite's limit of one billion bytes. Nothing
	// was changed.
	ErrTooLarge = errors.New("value is too large")

	// ErrInterruptOfAnotherRun is returned if another run of the account has an interrupt with this
	// id. Nothing was changed.
	ErrInterruptOfAnotherRun = errors.New("another run has an interrupt with this id")

	// ErrClosed is returned if the Store was closed.
	ErrClosed = errors.New("store is closed")
)

// wrap adds the operation and the base name of the file. The directory is left out of errors, which
// may leave the host.
func wrap(op, name string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if kind := classify(err); kind != nil {
		return fmt.Errorf("sqlite: %s %s: %w: %w", op, name, kind, err)
	}
	return fmt.Errorf("sqlite: %s %s: %w", op, name, err)
}

// classify returns the error of this package for an error of the driver, or nil.
func classify(err error) error {
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ErrLocked
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_IOERR:
		return ErrDisk
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrCorrupt
	case sqlite3.SQLITE_TOOBIG:
		return ErrTooLarge
	}
	return nil
}

// asDiskFull converts an I/O error of Open to ErrFull if the -shm file cannot grow because the disk
// is full. It is not used for writes: there the error may come after a commit is in the log, while
// [ErrFull] means that nothing was changed.
func asDiskFull(err error) error {
	if resultCode(err) == sqlite3.SQLITE_IOERR_SHMSIZE {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// resultCode returns SQLite's extended result code, or 0 for other errors.
func resultCode(err error) int {
	if sqliteErr, ok := errors.AsType[*driver.Error](err); ok {
		return sqliteErr.Code()
	}
	return 0
}

// withContext makes an operation that failed because its context ended return the error of the
// context. The driver may report an interrupted statement or a finished transaction instead.
func withContext(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
