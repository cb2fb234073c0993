package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/atomicfile"
)

var errBroken = errors.New("broken")

func text(s string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(s)
		return err
	}
}

// half writes some bytes and then fails.
func half(f *os.File) error { return errors.Join(text("hal")(f), errBroken) }

// wantFiles compares the files of a directory, each with its mode and text.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		info, err2 := file.Info()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %s", file.Name(), info.Mode(), text))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCreate_ExistingFileIsKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := atomicfile.Create(path, 0o640, half); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	wantFiles(t, dir)
	if err := atomicfile.Create(path, 0o640, text("one")); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, "a 640 one")
	written := false
	if err := atomicfile.Create(path, 0o640, func(*os.File) error { written = true; return nil }); !errors.Is(err, fs.ErrExist) || written {
		t.Errorf("second Create: %v; written: %t", err, written)
	}
	late := func(f *os.File) error { return os.WriteFile(filepath.Join(dir, "b"), []byte("other"), 0o600) }
	if err := atomicfile.Create(filepath.Join(dir, "b"), 0o640, late); !errors.Is(err, fs.ErrExist) {
		t.Errorf("existing file: %v", err)
	}
	wantFiles(t, dir, "a 640 one", "b 600 other")
}

// A dangling symbolic link counts as existing, because writing through it would create another
// file.
func TestCreate_DanglingLinkCountsAsExisting(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(filepath.Join(dir, "a"), 0o600, text("one")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}

func TestCreate_OneOfManyWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := atomicfile.Create(path, 0o600, text("one"))
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
}

func TestReplace_LeavesOldOrNewContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, s := range []string{"one", "two"} {
		if err := atomicfile.Replace(path, 0o644, text(s)); err != nil {
			t.Error(err)
		}
		wantFiles(t, dir, "a 644 "+s)
	}
	if err := atomicfile.Replace(path, 0o600, half); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	wantFiles(t, dir, "a 644 two")
	gone := filepath.Join(dir, "gone", "a")
	// and not the temporary name
	if err := atomicfile.Replace(gone, 0o600, text("x")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone+":") {
		t.Errorf("missing directory: %v", err)
	}
	t.Chdir(dir)
	if err := atomicfile.Replace("a", 0o644, text("here")); err != nil {
		t.Errorf("a name alone: %v", err)
	}
	wantFiles(t, dir, "a 644 here")
}

// A user may have write permission without read permission.
func TestCreate_InUnreadableDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may open everything")
	}
	dir := filepath.Join(t.TempDir(), "drop")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a")
	if err := atomicfile.Create(path, 0o600, text("one")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "one" {
		t.Errorf("%q, %v", text, err)
	}
}
