package audit_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

// The description of a decision has the three digests, and what was on the screen.
func TestDescribeDecision_HasWhatWasShown(t *testing.T) {
	log := newLog(t, "acme", 0)
	proposed, edited, text := digest("p", "proposed"), digest("p", "edited"), digest("p", "text")
	log.append(t, sample(0, audit.RequestDecided{
		Verb: audit.VerbApprove, Settles: true, Action: audit.Action{Name: "drop", Args: proposed}, Edited: edited, Approved: edited,
		Shown: audit.Shown{Surface: "terminal", Screen: text, Template: "inbox@1", Visible: audit.VisiblePart, At: audit.TimestampOf(noon)},
	}))
	got := audit.DescribeDecision(log.raw[0])
	for _, want := range []string{
		`approve by "alice"`, "proposed " + proposed.Sum[:12] + ", edited " + edited.Sum[:12] + ", approved " + edited.Sum[:12],
		`on "terminal" with template "inbox@1", NOT completely visible, opened at 2026-11-14T12:00:00.123456Z: text ` + text.Sum[:12],
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	for i, shown := range []audit.Shown{{Surface: "slack", Template: "slack@1"}, {Surface: "email", Template: "email@1"}, {Surface: "web", Template: "web-batch@1"}} {
		log.append(t, sample(1+i, audit.RequestDecided{Verb: audit.VerbApprove, Shown: shown}))
		if got := audit.DescribeDecision(log.raw[1+i]); !strings.Contains(got, "recorded at") || strings.Contains(got, "opened") {
			t.Errorf("%s does not observe the opening: %s", shown.Surface, got)
		}
	}
	log.append(t, sample(4, audit.RequestClaimed{}))
	if got := audit.DescribeDecision(log.raw[4]); got != "" {
		t.Errorf("a claim: %q", got)
	}
}
