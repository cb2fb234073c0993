package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where nobody can press keys, and where somebody asks for it, the inbox is a list.
func TestInbox_IsAListOutsideOfATerminal(t *testing.T) {
	call := demo(t, filepath.Join(t.TempDir(), "data"))
	for _, args := range [][]string{{"inbox"}, {"inbox", "--list"}, {"inbox", "--kind", "approval"}} {
		if code, out, errOut := call(args...); code != exitOK || !strings.Contains(out, "drop-users") {
			t.Errorf("%s: %d %s %s", args, code, out, errOut)
		}
	}
}
