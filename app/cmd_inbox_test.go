package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/tui"
)

// Without a terminal, or with --list, the inbox is a list.
func TestInbox_WithoutTerminalPrintsAList(t *testing.T) {
	call := startDemo(t, filepath.Join(t.TempDir(), "data"))
	for _, args := range [][]string{{"inbox"}, {"inbox", "--list"}, {"inbox", "--kind", "approval"}} {
		if code, out, errOut := call(args...); code != cli.ExitOK || !strings.Contains(out, "drop-users") {
			t.Errorf("%s: %d %s %s", args, code, out, errOut)
		}
	}
}

// A shell in an editor is a terminal that cannot move its cursor: the screen was drawn as garbage.
func TestInbox_DumbTerminalPrintsAList(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no terminal available: ", err)
	}
	defer terminal.Close()
	for kind, drawn := range map[string]bool{"xterm-256color": true, "": true, "dumb": false} {
		t.Setenv("TERM", kind)
		if got := tui.IsScreen(terminal); got != drawn {
			t.Errorf("on a terminal of type %q the inbox is drawn: %v", kind, got)
		}
	}
}
