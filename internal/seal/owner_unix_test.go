//go:build unix

package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/seal"
)

// An administrator changed the key of a server that runs as a user of its own. The new file was root's, the server went on sealing with the key
// that it knew, and what it wrote then could be opened by nobody.
func TestRotate_KeepsTheFileOwner(t *testing.T) {
	server, group := uint32(os.Geteuid()), uint32(os.Getegid())
	path := keyFile(t)
	if server == 0 { // who can give a file away; all others change their own
		server, group = 65534, 65534
		if err := os.Chown(path, int(server), int(group)); err != nil {
			t.Fatal(err)
		}
	}
	change, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	defer change.Close()
	for _, what := range []string{"rotate", "retire"} {
		if what == "retire" {
			if err := change.RetireOldKeys(); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != server || owner.Gid != group || info.Mode().Perm() != 0o600 {
			t.Errorf("after %s it is of %d:%d, mode %o", what, owner.Uid, owner.Gid, info.Mode().Perm())
		}
	}
}

// On a full disk each try left a file behind that may have held half of a key, and that nobody looked after.
func TestKeyFile_FailedWriteLeavesNoFile(t *testing.T) {
	path := keyFile(t)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	full := before
	full.Cur = 10 // less than a key
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	_, rotated := seal.Rotate(path)
	made := seal.CreateKeyFile(path + "2")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if rotated == nil || made == nil {
		t.Errorf("on a full disk: %v, %v", rotated, made)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
	openKeyFile(t, path)
}

// Two that change keys at once each put a key in front that the other did not see, and processes that had sealed with the one of them that was written over
// could open nothing of that any more. And the one that was done first let a third begin, whose predecessor the second then forgot.
func TestRotate_ConcurrentRotationIsRejected(t *testing.T) {
	path := keyFile(t)
	first, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Rotate(path); !errors.Is(err, seal.ErrRotationInProgress) {
		t.Errorf("a second one begins: %v", err)
	}
	if err := first.RetireOldKeys(); err != nil {
		t.Fatal(err)
	}
	first.Close()
	third, err := seal.Rotate(path)
	if err != nil {
		t.Fatalf("after the first one: %v", err)
	}
	third.Close()
}
