package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// Every screen in the two minimum sizes. To update them, run
// "go test ./internal/tui -run TestFrames -update",
// and review testdata.
func TestFrames_MatchGolden(t *testing.T) {
	for _, size := range []struct{ width, height int }{{80, 24}, {40, 20}} {
		open := func(t *testing.T, keys ...string) *harness {
			b := newHarness(t, size.width, size.height, dropUsers(), refund(), review())
			b.keys(keys...)
			return b
		}
		name := func(screen string) string { return fmt.Sprintf("%s-%dx%d", screen, size.width, size.height) }
		t.Run(name("all"), func(t *testing.T) {
			open(t, "j").golden(name("list"))
			open(t, "enter").golden(name("detail"))
			open(t, "j", "j", "enter").golden(name("detail-text"))
			open(t, "enter", "a").golden(name("confirm"))
			open(t, "enter", "r", "n", "o", "t", "space", "n", "o", "w").golden(name("reject"))
			open(t, "j", "enter", "e", "tab", "end", "9").golden(name("edit"))
			open(t, "j", "enter", "e", "tab", "ctrl+u", "4", "0", "ctrl+s").golden(name("confirm-edit"))
			open(t, "j", "j", "enter", "f", "right", "right").golden(name("form"))
			open(t, "?").golden(name("help"))
			newHarness(t, size.width, size.height).golden(name("connecting"))
			newHarness(t, size.width, size.height, []api.Request{}...).golden(name("empty"))
		})
	}
}

// The frames in the documentation are current, without some of their empty lines.
func TestDocs_FramesMatchGolden(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "inbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	without := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "\n")
	}
	for _, name := range []string{"list-80x24", "detail-80x24", "confirm-edit-80x24"} {
		frame, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(without(string(page)), without(string(frame))) {
			t.Errorf("docs/inbox.md does not show the current %s:\n%s", name, frame)
		}
	}
}
