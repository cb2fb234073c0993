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

// connRole is the role of a connection.
type connRole string

const (
	// roleProbe inspects a file that may belong to another program. It cannot write, not even by
	// recovering a journal.
	roleProbe  connRole = "prober"
	roleReader connRole = "reader"
	roleWriter connRole = "writer"
)

// absolutePath returns the absolute path. The pool opens connections at any time, so the path must
// not depend on the working directory.
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
	// SQLite reports these only as a disk error.
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return "", fmt.Errorf("%w: it is a directory; name a file in it", ErrPath)
	} else if err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: it is not a regular file", ErrPath)
	}
	return full, nil
}

// createFile creates an empty file that only its owner may read, unless it exists. SQLite would
// make it readable for all; its side files (-wal, -shm) take the mode of the main file.
//
// It must not run while a Store of this process has the file open, because closing the descriptor
// would drop that Store's locks. With O_EXCL there is a descriptor only if the file is new, and
// Open runs one call at a time.
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

// fileIdentity identifies the file and its side files as they were when it was opened.
type fileIdentity []openedFile

type openedFile struct {
	path string
	info fs.FileInfo
}

// identifyFiles skips files that cannot be found.
func identifyFiles(path string) (p fileIdentity) {
	base := path
	if file, err := filepath.EvalSymlinks(path); err == nil {
		base = file
	}
	for _, path := range []string{path, base + "-wal", base + "-shm"} { //mutate:sqlite-log-files-watched
		if info, err := os.Stat(path); err == nil {
			p = append(p, openedFile{path, info})
		}
	}
	return p
}

// check returns ErrReplaced if a file is missing or was replaced. SQLite does not notice this: it
// would continue with a file without a name, which is lost with the last process that has it open.
// Other processes would not see a deleted WAL, nor the locks in the -shm file.
func (p fileIdentity) check() error {
	for _, s := range p {
		info, err := os.Stat(s.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, s.info) {
			return fmt.Errorf("%w: %s", ErrReplaced, filepath.Base(s.path))
		}
	}
	return nil // SQLite reports missing permissions
}

// connect returns a pool for the file. Settings are in the DSN, because the pool applies it to each
// new connection.
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
		"_foreign_keys": {"on"},   // off by default; parts are deleted by cascade
		"_synchronous":  {"FULL"}, //mutate:sqlite-synchronous
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"}, // do not append the message of an unrelated earlier error
		// Without a limit one big checkpoint would make the WAL grow permanently.
		"_pragma": {"trusted_schema(0)", fmt.Sprintf("journal_size_limit(%d)", walLimit)},
	}
	// Never mode=rwc: SQLite must not create the file, see createFile.
	switch as {
	case roleProbe:
		q.Set("mode", "ro")
		q.Set("_query_only", "1")
	case roleReader:
		q.Set("mode", "rw")
		q.Set("_query_only", "1")
	case roleWriter:
		q.Set("mode", "rw")
		// A deferred transaction that reads first fails at once with SQLITE_BUSY_SNAPSHOT if
		// another connection commits before it writes; the busy timeout does not apply.
		q.Set("_txlock", "immediate") //mutate:sqlite-immediate
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a Windows drive: file:///C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}).String()
}
