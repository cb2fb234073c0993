package app

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// An auditor with an API key verifies and exports the log, and reports who approved what.
func TestAudit_WithAnAPIKeyOnly(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	o.as("bob", "approve", id, "--reason", "=fine")
	o.as("eve", "approve", id)
	code, out, errOut := o.as("aud", "audit", "verify")
	if code != exitOK || !strings.Contains(out, "acme") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	code, exported, errOut := o.as("aud", "audit", "export")
	if code != exitOK || strings.Count(exported, "\n") < 5 {
		t.Fatalf("%d %s%s", code, exported, errOut)
	}
	for want, text := range map[int]string{exitOK: exported, exitFindings: strings.Replace(exported, "bob", "eve", 1)} {
		if err := os.WriteFile("log.jsonl", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errOut := call(t, "audit", "verify", "--account", "acme", "--file", "log.jsonl"); code != want {
			t.Errorf("%d %s%s", code, out, errOut)
		}
	}
	if code, out, errOut := o.as("aud", "audit", "reconcile"); code != exitOK || !strings.Contains(out, "agree") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, _, errOut := o.as("bob", "audit", "verify"); code != exitRejected {
		t.Errorf("an approver: %d %s", code, errOut)
	}
	if code, _, errOut := o.as("aud", "audit", "verify", "--store", "sqlite:f.db"); code != exitUsage || !strings.Contains(errOut, "--account is required with a store") {
		t.Errorf("a store without an account: %d %s", code, errOut)
	}
}

func TestDecisions_ReportAsTableAndCSV(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, out, _ := o.as("aud", "decisions"); code != exitOK || !strings.Contains(out, "no decisions in the last 30 days") {
		t.Errorf("%d %s", code, out)
	}
	o.as("bob", "approve", id, "--reason", "fine")
	o.as("eve", "approve", id, "--reason", "=HYPERLINK(1)")
	if code, out, errOut := o.as("aud", "decisions"); code != exitOK || !shows(out, "approve … bob, eve … refund … cents") {
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
	if code, _, errOut := o.as("aud", "decisions", "--csv", "--json"); code != exitUsage {
		t.Errorf("%d %s", code, errOut)
	}
}
