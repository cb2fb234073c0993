//go:build unix

package seal_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/seal"
)

// After an administrator rotated the key, the new file belonged to root. The server, which runs as
// another user, kept sealing with its known key, and those values could not be opened later.
func TestRotate_KeepsTheFileOwner(t *testing.T) {
	server, group := uint32(os.Geteuid()), uint32(os.Getegid())
	path := keyFile(t)
	if server == 0 { // only root can change the owner; other users rotate their own files
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
			t.Errorf("after %s: owner %d:%d, mode %o", what, owner.Uid, owner.Gid, info.Mode().Perm())
		}
	}
}

// On a full disk each attempt left a file that may have contained half of a key.
func TestKeyFile_FailedWriteLeavesNoFile(t *testing.T) {
	// The limit is that of a process. In this one it could also fail the log that go test reads.
	const child = "FERMATA_TEST_FULL_DISK"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
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

// Two concurrent rotations each added a key that the other did not see, and values sealed with the
// overwritten key could not be opened. When the first rotation ended, a third could begin, and the
// second then removed its key.
func TestRotate_ConcurrentRotationIsRejected(t *testing.T) {
	path := keyFile(t)
	first, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Rotate(path); !errors.Is(err, seal.ErrRotationInProgress) {
		t.Errorf("second rotation: %v", err)
	}
	if err := first.RetireOldKeys(); err != nil {
		t.Fatal(err)
	}
	first.Close()
	third, err := seal.Rotate(path)
	if err != nil {
		t.Fatalf("after the first rotation: %v", err)
	}
	third.Close()
}
