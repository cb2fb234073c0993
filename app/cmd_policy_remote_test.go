package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

// The server's rulings are compared with those of another file.
func TestPolicySimulate_ReplaysServerRulings(t *testing.T) {
	o := openDeskEnv(t)
	if code, out, errOut := o.as("bot", "run", "inproc:refund", `{"order":17,"cents":4000}`, "--key", "r-1"); code != cli.ExitOK {
		t.Fatal(out, errOut)
	}
	code, out, errOut := o.as("aud", "policy", "simulate", "--replay", "30d", "policy.yaml")
	if code != cli.ExitOK || !strings.HasPrefix(out, "1 rulings since ") || !strings.Contains(out, "1 unchanged, 0 stricter, 0 looser") {
		t.Errorf("the same file: %d %s%s", code, out, errOut)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("open.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("default: allow\n")
	code, out, errOut = o.as("aud", "policy", "simulate", "open.yaml", "--replay", "1h", "--json")
	var past replay.HistoryReport
	if err := json.Unmarshal([]byte(out), &past); err != nil || code != cli.ExitFindings || past.Looser != 1 || past.Examples[0].Tool != "refund" || past.Examples[0].After != policy.Allow {
		t.Errorf("an open file: %d %s%s %v", code, out, errOut, err)
	}
	for _, c := range []struct {
		who, args string
		code      int
		want      string
	}{
		{"aud", "policy simulate open.yaml --replay soon", cli.ExitUsage, "is not a duration"},
		{"aud", "policy simulate open.yaml --replay 30d --inputs inputs.jsonl", cli.ExitUsage, "either --inputs"},
		{"aud", "policy simulate none.yaml --replay 30d", cli.ExitUsage, "none.yaml"},
		{"bob", "policy simulate open.yaml --replay 30d", cli.ExitRejected, "forbidden"},
	} {
		if code, out, errOut := o.as(c.who, strings.Fields(c.args)...); code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("fermata %s: %d %s%s", c.args, code, out, errOut)
		}
	}
	write("default: maybe\n")
	if code, _, errOut := o.as("aud", "policy", "simulate", "open.yaml", "--replay", "1h"); code != cli.ExitUsage || !strings.Contains(errOut, "open.yaml:1") {
		t.Errorf("no policy: %d %s", code, errOut)
	}
}

// A policy text can be read by its digest.
func TestPolicyShow_PrintsThePolicyText(t *testing.T) {
	o := openDeskEnv(t)
	want, err := os.ReadFile("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	code, out, errOut := o.as("aud", "policy", "show")
	if code != cli.ExitOK || out != string(want) {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("bot", "run", "inproc:refund", `{"order":17,"cents":4000}`, "--key", "r-1"); code != cli.ExitOK {
		t.Fatal(out, errOut)
	}
	code, out, errOut = o.as("bob", "policy", "show", o.last().Activity.Policy, "--json")
	var text api.PolicyText
	if err := json.Unmarshal([]byte(out), &text); err != nil || code != cli.ExitOK || text.Text != string(want) || text.Since == nil {
		t.Errorf("%d %s%s %v", code, out, errOut, err)
	}
	if code, _, errOut := o.as("aud", "policy", "show", "sha256:00"); code == cli.ExitOK || !strings.Contains(errOut, "not_found") {
		t.Errorf("%d %s", code, errOut)
	}
}
