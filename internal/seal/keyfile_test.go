package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/seal"
)

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := seal.CreateKeyFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func openKeyFile(t *testing.T, path string) *seal.KeyFile {
	t.Helper()
	f, err := seal.OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCreateKeyFile_OnceAndReadableByOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := seal.OpenKeyFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing file: %v", err)
	}
	files := make([]*seal.KeyFile, 8)
	var all sync.WaitGroup
	for i := range files {
		all.Go(func() {
			if err := seal.CreateKeyFile(path); err != nil {
				t.Error(err)
			}
			files[i] = openKeyFile(t, path)
		})
	}
	all.Wait()
	sealed := files[0].Seal("here", []byte("secret"))
	for _, f := range files {
		if data, err := f.Open("here", sealed); err != nil || string(data) != "secret" {
			t.Fatalf("two starts have different keys: %q, %v", data, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.part-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOpenKeyFile_ReportsErrors(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		text string
		mode fs.FileMode
		want string
	}{
		"readable by others": {good, 0o644, "chmod 600"},
		"no key":             {"\n", 0o600, "no key"},
		"nonsense":           {"nonsense", 0o600, "64 hexadecimal digits"},
		"a second line":      {good + "\nnonsense\n", 0o600, "line 2"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := errors.Join(os.WriteFile(path, []byte(c.text), c.mode), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := seal.OpenKeyFile(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), good) || strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two processes use the file; one of them rotates the key.
func TestRotate_OtherProcessesReloadTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyFile(t)
		running, old := openKeyFile(t, path), []byte(nil)
		old = running.Seal("here", []byte("old"))
		change, err := seal.Rotate(path)
		if err != nil {
			t.Fatal(err)
		}
		change.Close() // as if the process crashed
		rotating := openKeyFile(t, path)
		sealed := rotating.Seal("here", []byte("new"))
		if rotating.Current(old) || !rotating.Current(sealed) {
			t.Error("the old key is still the current one")
		}
		if data, err := running.Open("here", sealed); err != nil || string(data) != "new" {
			t.Errorf("the running process opens %q, %v", data, err)
		}
		if change, err = seal.Rotate(path); err != nil { // while a rotation is in progress
			t.Fatal(err)
		}
		defer change.Close()
		if data, err := openKeyFile(t, path).Open("here", old); err != nil || string(data) != "old" || !openKeyFile(t, path).Current(sealed) {
			t.Errorf("the second rotation lost or added a key: %q, %v", data, err)
		}
		time.Sleep(2 * seal.ReloadInterval)
		if !rotating.Current(running.Seal("here", []byte("newer"))) {
			t.Error("the running process still seals with the old key")
		}
		if err := change.RetireOldKeys(); err != nil {
			t.Fatal(err)
		}
		if _, err := openKeyFile(t, path).Open("here", old); !errors.Is(err, seal.ErrUnknownKey) {
			t.Errorf("the old key was not removed: %v", err)
		}
	})
}

// A directory that two hosts share has no common lock.
func TestRotate_RetireKeepsKeysOfALaterRotation(t *testing.T) {
	path := keyFile(t)
	second, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close() // releases the lock without removing a key
	first, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	err = first.RetireOldKeys()
	first.Close()
	if err != nil {
		t.Fatal(err)
	}
	sealed := openKeyFile(t, path).Seal("here", []byte("everything"))
	third, err := seal.Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := second.RetireOldKeys(); !errors.Is(err, seal.ErrChanged) {
		t.Errorf("second rotation: %v", err)
	}
	if _, err := openKeyFile(t, path).Open("here", sealed); err != nil {
		t.Errorf("the key in use: %v", err)
	}
}

func TestKeyFile_MissingOrBrokenFileKeepsLoadedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := keyFile(t)
		f := openKeyFile(t, path)
		if err := f.Err(); err != nil {
			t.Errorf("a good file: %v", err)
		}
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sealed := f.Seal("here", []byte("secret"))
		for _, spoil := range []func() error{
			func() error { return os.WriteFile(path, []byte("half a k"), 0o600) },
			func() error { return os.Remove(path) },
			func() error { return os.WriteFile(path, nil, 0o600) },
			func() error {
				// the next start would reject it
				return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, 0o644))
			},
		} {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * seal.ReloadInterval)
			if data, err := f.Open("here", sealed); err != nil || string(data) != "secret" {
				t.Errorf("%q, %v", data, err)
			}
			// Without Err only the next start would report the problem.
			if f.Err() == nil {
				t.Error("Err() = nil for an unreadable file")
			}
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * seal.ReloadInterval)
		if err := f.Err(); err != nil {
			t.Errorf("after the repair: %v", err)
		}
	})
}
