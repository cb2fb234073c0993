package app

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
)

// An auditor with an API key verifies and exports the log, and reports who approved what.
func TestAudit_WithAnAPIKeyOnly(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	o.as("bob", "approve", id, "--reason", "=fine")
	o.as("eve", "approve", id)
	code, out, errOut := o.as("aud", "audit", "verify")
	if code != cli.ExitOK || !strings.Contains(out, "acme") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	code, exported, errOut := o.as("aud", "audit", "export")
	if code != cli.ExitOK || strings.Count(exported, "\n") < 5 {
		t.Fatalf("%d %s%s", code, exported, errOut)
	}
	for want, text := range map[int]string{cli.ExitOK: exported, cli.ExitFindings: strings.Replace(exported, "bob", "eve", 1)} {
		if err := os.WriteFile("log.jsonl", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errOut := call(t, "audit", "verify", "--account", "acme", "--file", "log.jsonl"); code != want {
			t.Errorf("%d %s%s", code, out, errOut)
		}
	}
	if code, out, errOut := o.as("aud", "audit", "reconcile"); code != cli.ExitOK || !strings.Contains(out, "agree") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, _, errOut := o.as("bob", "audit", "verify"); code != cli.ExitRejected {
		t.Errorf("an approver: %d %s", code, errOut)
	}
	if code, _, errOut := o.as("aud", "audit", "verify", "--store", "sqlite:f.db"); code != cli.ExitUsage || !strings.Contains(errOut, "--account is required with a store") {
		t.Errorf("a store without an account: %d %s", code, errOut)
	}
}

func TestDecisions_ReportAsTableAndCSV(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, out, _ := o.as("aud", "decisions"); code != cli.ExitOK || !strings.Contains(out, "no decisions in the last 30 days") {
		t.Errorf("%d %s", code, out)
	}
	o.as("bob", "approve", id, "--reason", "fine")
	o.as("eve", "approve", id, "--reason", "=HYPERLINK(1)")
	if code, out, errOut := o.as("aud", "decisions"); code != cli.ExitOK || !shows(out, "approve … bob, eve … refund … cents") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	_, out, _ := o.as("aud", "decisions", "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][1] != "approve" || rows[1][2] != "bob eve" || rows[1][4] != "refund" || !json.Valid([]byte(rows[1][5])) || len(rows[1]) != len(rows[0]) {
		t.Errorf("%q, %v", rows, err)
	}
	if strings.Contains(out, ",=HYPER") {
		t.Errorf("a formula:\n%s", out)
	}
	if code, _, errOut := o.as("aud", "decisions", "--csv", "--json"); code != cli.ExitUsage {
		t.Errorf("%d %s", code, errOut)
	}
}
