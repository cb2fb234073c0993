package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	driver "modernc.org/sqlite"
)

// connRole is what a connection may do.
type connRole string

const (
	// roleProbe looks at a file that may belong to somebody else. It cannot write even by recovering a journal.
	roleProbe  connRole = "prober"
	roleReader connRole = "reader"
	roleWriter connRole = "writer"
)

// absolutePath returns the path to open. Connections are opened again whenever the pool wants, so a path that depends on the
// working directory of the moment will not do.
func absolutePath(path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	case path == ":memory:":
		return "", fmt.Errorf("%w: to keep checkpoints in memory use store/memory", ErrPath)
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("%w: want a plain path, not a URI (write ./%s if the file is really called so)", ErrPath, path)
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("%w: it contains a zero byte", ErrPath)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// Of these SQLite says no more than that there was an error of the disk.
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return "", fmt.Errorf("%w: it is a folder; say which file in it", ErrPath)
	} else if err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: it is a device or the like, and no file", ErrPath)
	}
	return full, nil
}

// createFile makes an empty file that only its owner may read, unless there is one. SQLite would make it readable for all;
// its side files (-wal, -shm) take the mode of the main one.
//
// It must not run while a Store of this process has the file open, because closing the descriptor would drop that
// Store's locks. With O_EXCL there is a descriptor only if the file is new, and Open lets nobody in before it is closed.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// fileIdentity is where the file and those beside it were when it was opened.
type fileIdentity []openedFile

type openedFile struct {
	path string
	info fs.FileInfo
}

// identifyFiles leaves out what is nowhere that the host knows of.
func identifyFiles(path string) (p fileIdentity) {
	beside := path
	if file, err := filepath.EvalSymlinks(path); err == nil {
		beside = file
	}
	for _, path := range []string{path, beside + "-wal", beside + "-shm"} { //mutate:sqlite-log-files-watched
		if info, err := os.Stat(path); err == nil {
			p = append(p, openedFile{path, info})
		}
	}
	return p
}

// validateSave fails if a file is not there any more, or another one is. SQLite notices nothing of that: it would go on with a file that has no name, and all
// of it would be gone with the last process that has it open. Of a log that was deleted whoever opens the file next knows nothing, nor of the locks in the
// third file.
func (p fileIdentity) check() error {
	for _, s := range p {
		info, err := os.Stat(s.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, s.info) {
			return fmt.Errorf("%w: %s", ErrReplaced, filepath.Base(s.path))
		}
	}
	return nil // who may not look is told by SQLite
}

// connect returns a pool for the file. Settings are in the DSN because the pool applies it to each new connection.
func connect(path string, as connRole, patience time.Duration) (*sql.DB, error) {
	connector, err := driver.NewConnector(dsn(path, as, patience))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func dsn(path string, as connRole, patience time.Duration) string {
	q := url.Values{
		"_busy_timeout": {strconv.FormatInt(patience.Milliseconds(), 10)},
		"_foreign_keys": {"on"},   // off by default, and parts are deleted by cascade
		"_synchronous":  {"FULL"}, //mutate:sqlite-synchronous
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"}, // update not append the message of an unrelated earlier error
		// One big checkpoint makes the WAL grow for good unless it has a limit to be cut back to.
		"_pragma": {"trusted_schema(0)", fmt.Sprintf("journal_size_limit(%d)", walLimit)},
	}
	// Never mode=rwc: SQLite must not make the file, see create.
	switch as {
	case roleProbe:
		q.Set("mode", "ro")
		q.Set("_query_only", "1")
	case roleReader:
		q.Set("mode", "rw")
		q.Set("_query_only", "1")
	case roleWriter:
		q.Set("mode", "rw")
		// A deferred transaction that reads first fails at once with SQLITE_BUSY_SNAPSHOT if somebody else commits before it
		// writes; the busy timeout is not even consulted.
		q.Set("_txlock", "immediate") //mutate:sqlite-immediate
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a Windows drive: file:///C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}).String()
}
