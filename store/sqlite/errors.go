package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/store"
)

// What can go wrong besides the errors of package store. They come wrapped with the operation and the file's name; test
// for them with errors.Is.
var (
	// ErrPath says that Open was given something that is not the path of a file. Nothing was touched.
	ErrPath = errors.New("not the path of a database file")

	// ErrForeign says that the file is there but was not made by Fermata. It was not written to. Choose another path.
	ErrForeign = errors.New("not a Fermata database")

	// ErrNewer says that a newer build of Fermata has already changed the schema. Run that build, or restore a backup from
	// before the upgrade.
	ErrNewer = migration.ErrNewer

	// ErrDrift says that a migration which the database remembers is not the one this build carries: the two come from
	// different sources. Nothing was changed; find out which build made the file.
	ErrDrift = migration.ErrDrift

	// ErrLocked says that another process kept the write lock for longer than this one was willing to wait.
	// Nothing was changed; trying again later is safe.
	ErrLocked = errors.New("database is locked by another process")

	// ErrFull says that there is no room for the write. Nothing was changed; it will succeed once there is room.
	ErrFull = store.ErrFull

	// ErrDisk says that the disk did not do what it should. Whether a write was done is not known.
	ErrDisk = store.ErrDisk

	// ErrReplaced says that the file was deleted or moved, or that another one was put in its place, while it was open. Nothing was changed. Close the
	// Store and put back what belongs there: what the old file holds is gone once nobody has it open. If it was one of those beside it (-wal, -shm), let nobody
	// else open the file before the Store is closed: that brings into the file what was in them, and a process that is killed loses it.
	ErrReplaced = errors.New("a file of the database was deleted, moved or replaced while it was open")

	// ErrCorrupt says that the file is damaged. Restore a backup.
	ErrCorrupt = errors.New("database file is damaged")

	// ErrTooLarge says that a part is larger than SQLite can keep (one billion bytes). Nothing was changed.
	ErrTooLarge = errors.New("part is too big")

	// ErrInterruptOfAnotherRun says that an interrupt of this id was asked by another run of the account. Nothing was changed.
	ErrInterruptOfAnotherRun = errors.New("another run has an interrupt of this id")

	// ErrClosed says that the Store was closed.
	ErrClosed = errors.New("store is closed")
)

// wrap says what was being done to which file. Only the base name is told: where a host keeps its files is not for logs
// that travel.
func wrap(op, name string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if kind := classify(err); kind != nil {
		return fmt.Errorf("sqlite: %s %s: %w: %w", op, name, kind, err)
	}
	return fmt.Errorf("sqlite: %s %s: %w", op, name, err)
}

// classify returns the error of this package that an error of the driver stands for, or nil.
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

// asDiskFull says of an error of Open that the disk is full, where SQLite calls it an I/O error: the file beside the log cannot grow. It is not for writes: there the error may come
// after a commit is in the log, and is not [ErrFull], which says that nothing was changed.
func asDiskFull(err error) error {
	if resultCode(err) == sqlite3.SQLITE_IOERR_SHMSIZE {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// resultCode returns SQLite's extended result code, or 0 if the error is not SQLite's.
func resultCode(err error) int {
	if sqliteErr, ok := errors.AsType[*driver.Error](err); ok {
		return sqliteErr.Code()
	}
	return 0
}

// withContext makes sure that an operation which failed because its context ended says so: the driver may report an
// interrupted statement or a finished transaction instead.
func withContext(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
