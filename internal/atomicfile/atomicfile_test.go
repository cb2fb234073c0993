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

// half writes something, and fails.
func half(f *os.File) error { return errors.Join(text("hal")(f), errBroken) }

// wantFiles says what a folder has: each file with its mode and text.
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
		t.Errorf("there is %q, and should be %q", got, want)
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
		t.Errorf("again: %v; written for nothing: %t", err, written)
	}
	late := func(f *os.File) error { return os.WriteFile(filepath.Join(dir, "b"), []byte("other"), 0o600) }
	if err := atomicfile.Create(filepath.Join(dir, "b"), 0o640, late); !errors.Is(err, fs.ErrExist) {
		t.Errorf("somebody else's, meanwhile: %v", err)
	}
	wantFiles(t, dir, "a 640 one", "b 600 other")
}

// A link to nowhere is something, too: behind it somebody would find what they did not ask for.
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
	if err := atomicfile.Replace(gone, 0o600, text("x")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone+":") { // and not a name that nobody gave it
		t.Errorf("no folder: %v", err)
	}
	t.Chdir(dir)
	if err := atomicfile.Replace("a", 0o644, text("here")); err != nil {
		t.Errorf("a name alone: %v", err)
	}
	wantFiles(t, dir, "a 644 here")
}

// Not everybody who may put a file into a folder may look into it.
func TestCreate_InUnreadableDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may open everything; the file is made in any case")
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
