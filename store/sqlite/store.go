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
	"github.com/fermata-go/fermata/store"
)

var _ store.Store = (*Store)(nil)

// Store keeps runs and checkpoints in a SQLite file. Open makes one; all methods may be called at once from any goroutine.
type Store struct {
	name    string // the file's base name, for errors
	files   fileIdentity
	wal     walFile // of serve
	closed  atomic.Bool
	writer  *sql.DB
	readers *sql.DB
	anchor  *sql.Conn // never used, and never closed before the Store is: with the last connection the WAL would go, and come back as another file

	reading statements // of readers
	writing statements // of writer

	queue   chan *pendingWrite // those that serve takes next
	closing chan struct{}
	loops   sync.WaitGroup

	watch watchers
	// clock is that of the host, as SQLite's own is, but finer. All who share the file are on this host.
	clock func() time.Time
}

// busyTimeout is how long a connection waits for a lock of another process.
const busyTimeout = 5 * time.Second

// opening lets one Open of this process work at a time; create says why.
var opening sync.Mutex

// Open opens the database at path and makes it if there is none. The directory must exist.
//
// The path is a file's name whatever characters it holds; it is not a URI. For a store without a file use store/memory.
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
	s := &Store{name: name, queue: make(chan *pendingWrite), closing: make(chan struct{}), clock: time.Now}
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
	// Writes wait for each other here, where a context can end the wait, and not inside SQLite, where it cannot.
	s.writer.SetMaxOpenConns(1)
	if applied == 0 {
		// Counts for a new file alone, before its first page is written: then Vacuum can give room back bit by bit.
		if _, err := s.writer.ExecContext(ctx, `PRAGMA auto_vacuum = incremental`); err != nil {
			return err
		}
	} else if err := advanceFeedIfRestored(ctx, s.writer, s.clock()); err != nil {
		return err
	}
	if err := enableWAL(ctx, s.writer, patience); err != nil {
		return err
	}
	if applied < len(steps) { // or Open would wait for other writers although it has nothing to write
		if err := migrate(ctx, s.writer, steps); err != nil {
			return err
		}
	}
	if s.readers, err = connect(path, roleReader, patience); err != nil {
		return err
	}
	limit := max(4, runtime.NumCPU())
	s.readers.SetMaxOpenConns(limit + 1) // the anchor
	s.readers.SetMaxIdleConns(limit)
	if s.anchor, err = s.readers.Conn(ctx); err != nil {
		return err
	}
	if err := drain(ctx, s.anchor, `SELECT 1 FROM sqlite_schema LIMIT 1`); err != nil { // now it has the WAL open
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.files, s.wal = identifyFiles(path), newWALFile(path)
	s.loops.Go(s.writeLoop)
	return nil
}

// probeFile returns how many of the steps the file has. It refuses one that is not ours before anything is opened that could
// write to it: setting the journal mode already would.
func probeFile(ctx context.Context, path string, patience time.Duration, steps []migration.Step) (applied int, err error) {
	applied, err = probeAs(ctx, roleProbe, path, patience, steps)
	// A crash may have left a journal that has to be rolled back before the file can be read. Doing so is no more than
	// whoever opens the file next would do.
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

// Close waits for what is under way and closes the file. Later calls of other methods fail with [ErrClosed]; a second
// Close does nothing.
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

// fail turns what went wrong into what the caller is told.
func (s *Store) fail(ctx context.Context, op string, err error) error {
	for _, told := range portErrors {
		if errors.Is(err, told) {
			return told
		}
	}
	if s.closed.Load() && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return wrap(op, s.name, withContext(ctx, err))
}
