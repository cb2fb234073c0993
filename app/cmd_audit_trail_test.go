package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// A trail shows next to each other what was proposed, approved and executed, and detects a
// difference.
func TestAuditTrail_ShowsProposedApprovedAndExecuted(t *testing.T) {
	proposed, edited := audit.NewPayload([]byte("a")).Digest(), audit.NewPayload([]byte("b")).Digest()
	for name, c := range map[string]struct {
		ran  audit.Digest
		code int
		want string
	}{
		"as approved":    {edited, cli.ExitOK, "what was executed is what was approved"},
		"something else": {proposed, cli.ExitFindings, "WHAT WAS EXECUTED IS NOT WHAT WAS APPROVED"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fermata.db")
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			drop := audit.Action{Name: "drop-table", Args: proposed}
			place := audit.Location{Run: "run_1", StateKey: "drop-1", Interrupt: "int_1", Request: "int_1"}
			var writes store.Writes
			for _, body := range []audit.Body{
				audit.RequestAsked{Kind: "approval", Action: drop},
				audit.RequestDecided{Verb: audit.VerbApproveWithEdits, Action: drop, Edited: edited},
				audit.RequestDecided{Verb: audit.VerbApprove, Settles: true, Action: drop, Edited: edited, Approved: edited},
				audit.EffectBegun{Number: 1, Action: audit.Action{Name: "drop-table", Args: c.ran}},
				audit.EffectEnded{Number: 1, State: audit.EffectStateSucceeded},
			} {
				line, err := audit.NewLine("acme", audit.Actor{Principal: "bob", Kind: audit.ActorPerson}, place, body)
				if err != nil {
					t.Fatal(err)
				}
				writes.Audit = append(writes.Audit, line)
			}
			if err := s.CommitWrites(t.Context(), "acme", writes); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, "audit", "trail", "drop-1", "--store", "sqlite:"+path, "--account", "acme")
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("%d %s\n%s", code, out, errs)
			}
			for _, line := range []string{
				"proposed  ", proposed.Short() + "  record 1, by bob\n", edited.Short() + "  record 2, by bob\n",
				edited.Short() + "  record 3, by bob\n", c.ran.Short() + "  record 4, by bob succeeded\n",
			} {
				if !strings.Contains(out, line) {
					t.Errorf("%q is missing in\n%s", line, out)
				}
			}
			if code, _, errs := call(t, "audit", "trail", "nothing", "--store", "sqlite:"+path, "--account", "acme"); code != 3 || !strings.Contains(errs, "nothing") {
				t.Errorf("unknown run: %d %s", code, errs)
			}
		})
	}
}
