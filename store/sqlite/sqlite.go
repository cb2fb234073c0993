// Package sqlite opens a store in one SQLite file. It needs no server and no C compiler. Committed
// data survives a crash of the process and of the machine.
//
//	st, err := sqlite.Open("fermata.db")
//	if err != nil {
//		return err
//	}
//	defer st.Close()
//
// A new file is readable only by its owner. Several processes on one machine may open the same
// file; each write waits up to five seconds for the others. Do not put the file on a network file
// system: its locks are not reliable. Do not open or copy it by other means in the same process:
// closing any descriptor of a file drops all locks that the process holds on it.
package sqlite

import (
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/store"
)

// Errors of a store. They are wrapped with the operation and the name of the file; test for them
// with errors.Is.
var (
	// ErrForeign is returned for a file that was not created by Fermata. It was not changed. Choose
	// another path.
	ErrForeign = sqlite.ErrForeign

	// ErrNewer is returned if a newer build of Fermata has changed the schema. Use that build, or
	// restore a backup from before the upgrade.
	ErrNewer = sqlite.ErrNewer

	// ErrLocked is returned if another process held the write lock for too long. Nothing was
	// changed; a retry is safe.
	ErrLocked = sqlite.ErrLocked

	// ErrFull is returned if there is no space for the write. Nothing was changed; it succeeds once
	// there is space.
	ErrFull = sqlite.ErrFull

	// ErrCorrupt is returned if the file is damaged. Restore a backup.
	ErrCorrupt = sqlite.ErrCorrupt
)

// Open opens the database at path and creates or migrates it if needed. The directory must exist.
// The path is a file name with any characters, not a URI.
func Open(path string) (*store.Store, error) {
	s, err := sqlite.Open(path)
	if err != nil {
		return nil, err
	}
	return store.New(s, s.Close), nil
}
