package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLinkOrRename_FilesystemWithoutHardLinks(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	unable := func(string, string) error { return syscall.EPERM }
	for _, c := range []struct {
		text string
		want error
	}{{"one", nil}, {"two", fs.ErrExist}} {
		if err := os.WriteFile(from, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := linkOrRename(unable, from, to); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
		if text, err := os.ReadFile(to); err != nil || string(text) != "one" {
			t.Errorf("after %s there is %q, %v", c.text, text, err)
		}
	}
}
