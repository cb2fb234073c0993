//go:build unix

package lockfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-go/fermata/internal/lockfile"
)

// One caller holds the lock at a time. A directory and a file in it have separate locks.
func TestTry_SecondLockReturnsErrLocked(t *testing.T) {
	dir := t.TempDir()
	for name, try := range map[string]func() (func(), error){
		"a file":   func() (func(), error) { return lockfile.Try(filepath.Join(dir, "lock")) },
		"a folder": func() (func(), error) { return lockfile.TryDir(dir) },
	} {
		release, err := try()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := try(); !errors.Is(err, lockfile.ErrLocked) {
			t.Errorf("%s that is locked: %v", name, err)
		}
		release()
		again, err := try()
		if err != nil {
			t.Fatalf("%s that was released: %v", name, err)
		}
		defer again()
	}
	for name, err := range map[string]error{
		"a file in no folder": second(lockfile.Try(filepath.Join(dir, "none", "lock"))), "no folder": second(lockfile.TryDir(filepath.Join(dir, "none"))),
	} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ func(), err error) error { return err }
