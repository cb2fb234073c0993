package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Store = (*Store)(nil)

// Store stores runs and checkpoints in a SQLite file. Use Open to create one. All methods are safe
// for concurrent use.
type Store struct {
	patience time.Duration // how long a connection waits for a lock of another process
	name     string        // the file's base name, for errors
	files    fileIdentity
	wal      walFile // used by writeLoop
	closed   atomic.Bool
	writer   *sql.DB
	readers  *sql.DB
	// unused, open until Close: the WAL would be deleted with the last connection and recreated as
	// another file
	anchor *sql.Conn

	reading statements // for readers
	writing statements // for writer

	queue   chan *pendingWrite // writes for writeLoop
	closing chan struct{}
	loops   sync.WaitGroup

	watch watchers
	// clock is the host's clock, like SQLite's but with a finer resolution. All processes that
	// share the file are on this host.
	clock func() time.Time
}

// busyTimeout is how long a connection waits for a lock of another process.
const busyTimeout = 5 * time.Second

// opening serializes Open within this process; see createFile.
var opening sync.Mutex

// Open opens the database at path and creates it if needed. The directory must exist.
//
// The path is a file name with any characters, not a URI. For a store without a file use
// store/memory.
func Open(path string) (*Store, error) {
	return open(path, busyTimeout)
}

func open(path string, patience time.Duration) (*Store, error) {
	name := filepath.Base(path)
	full, err := absolutePath(path)
	if err != nil {
		return nil, wrap("open", name, err)
	}
	opening.Lock()
	defer opening.Unlock()
	s := &Store{name: name, patience: patience, queue: make(chan *pendingWrite), closing: make(chan struct{}), clock: time.Now}
	if err := s.open(context.Background(), full, patience); err != nil {
		return nil, wrap("open", name, asDiskFull(errors.Join(err, s.Close())))
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, patience time.Duration) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	if err := createFile(path); err != nil {
		return err
	}
	applied, err := probeFile(ctx, path, patience, steps)
	if err != nil {
		return err
	}
	if s.writer, err = connect(path, roleWriter, patience); err != nil {
		return err
	}
	// Writes wait for each other here, where a context can end the wait, and not inside SQLite.
	s.writer.SetMaxOpenConns(1)
	if applied == 0 {
		// This applies only to a new file, before its first page is written. It enables incremental
		// vacuum.
		if _, err := s.writer.ExecContext(ctx, `PRAGMA auto_vacuum = incremental`); err != nil {
			return err
		}
	} else if err := advanceFeedIfRestored(ctx, s.writer, s.clock()); err != nil {
		return err
	}
	if err := enableWAL(ctx, s.writer, patience); err != nil {
		return err
	}
	if applied < len(steps) { // otherwise Open would wait for other writers without need
		if err := migrate(ctx, s.writer, steps); err != nil {
			return err
		}
	}
	if s.readers, err = connect(path, roleReader, patience); err != nil {
		return err
	}
	limit := max(4, runtime.NumCPU())
	s.readers.SetMaxOpenConns(limit + 1) // plus the anchor
	s.readers.SetMaxIdleConns(limit)
	if s.anchor, err = s.readers.Conn(ctx); err != nil {
		return err
	}
	// opens the WAL
	if err := drain(ctx, s.anchor, `SELECT 1 FROM sqlite_schema LIMIT 1`); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.files, s.wal = identifyFiles(path), newWALFile(path)
	s.loops.Go(s.writeLoop)
	return nil
}

// probeFile returns the number of steps that the file has. It rejects a foreign file before
// anything is opened that could write to it, such as by setting the journal mode.
func probeFile(ctx context.Context, path string, patience time.Duration, steps []migration.Step) (applied int, err error) {
	applied, err = probeAs(ctx, roleProbe, path, patience, steps)
	// A crash may have left a journal that must be rolled back before the file can be read. The
	// next open would do the same.
	if primary := resultCode(err) & 0xff; primary == sqlite3.SQLITE_READONLY || primary == sqlite3.SQLITE_CANTOPEN {
		applied, err = probeAs(ctx, roleReader, path, patience, steps)
	}
	return applied, err
}

func probeAs(ctx context.Context, as connRole, path string, patience time.Duration, steps []migration.Step) (int, error) {
	db, err := connect(path, as, patience)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return inspectSchema(ctx, db, steps)
}

// Close waits for running calls and closes the file. Later calls return [ErrClosed]; a second Close
// does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.closing)
	s.loops.Wait()
	s.watch.stop()
	var errs []error
	if s.anchor != nil {
		errs = append(errs, s.anchor.Close())
	}
	for _, db := range []*sql.DB{s.readers, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return wrap("close", s.name, err)
	}
	return nil
}

// fail converts an error to the error of the port or of this package.
func (s *Store) fail(ctx context.Context, op string, err error) error {
	for _, known := range portErrors {
		if errors.Is(err, known) {
			return known
		}
	}
	if s.closed.Load() && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return wrap(op, s.name, withContext(ctx, err))
}
