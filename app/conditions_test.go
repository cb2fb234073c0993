package app

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/cli"
)

func TestApprove_WithConditions(t *testing.T) {
	t.Chdir(t.TempDir())
	e := openTable(t, "sqlite:f.db")
	asked, ok := ways[3].ask(t, e.client("bot"), "ask").(fermata.NeedsInput)
	if !ok {
		t.Fatal("people are not asked")
	}
	id := asked.Interrupts[0].ID
	if code, _, errOut := e.as("bob", "approve", id, "--up-to", "table=100"); code != cli.ExitConflict || !strings.Contains(errOut, "onlyIf") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, errOut := e.as("bob", "approve", id, "--until", "2h", "--only-if", `args.table == "users"`); code != cli.ExitOK || !strings.Contains(out, "completed") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := e.as("bob", "show", id); code != cli.ExitOK || !strings.Contains(out, `only if args.table == "users"`) {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	hold := ways[0].ask(t, e.client("bot"), "ask").(fermata.NeedsInput).Interrupts[0].ID
	gate := ways[1].ask(t, e.client("bot"), "ask").(fermata.NeedsInput).Interrupts[0].ID
	for _, id := range []string{hold, gate} {
		if code, _, errOut := e.as("bob", "approve", id, "--until", "2h"); code != cli.ExitUsage {
			t.Errorf("%d %s", code, errOut)
		}
	}
}
