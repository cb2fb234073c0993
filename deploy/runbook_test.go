package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/audit"
)

// TestRunbook runs the commands of docs/runbook-stuck-approval.md, on a server with a waiting run,
// one that must not continue, and a parked one.
func TestRunbook(t *testing.T) {
	p := open(t, "runbook-stuck-approval.md")
	h := setUpServer(t, "sqlite:"+filepath.Join(t.TempDir(), "fermata.db"))
	live, last := parked(t, h, "parked")
	c := live.client(t)
	request := approval(t, c, "stuck", "")
	approval(t, c, "never", "")

	stuck, err := c.Run(t.Context(), "stuck")
	if err != nil {
		t.Fatal(err)
	}

	s := h.shell()
	s.env = append(s.env, "FERMATA_URL="+live.URL, "FERMATA_TOKEN="+live.Token, "ACCOUNT=acme", "RUN=stuck", "RUN_ID="+stuck.RunID, "REQUEST="+request, "OTHER_RUN=never", "PARKED_RUN=parked")
	says := func(block string, words ...string) {
		t.Helper()
		out := s.runBlock(t, p, block)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s does not print %q:\n%s", block, word, out)
			}
		}
	}
	says("runbook-key")
	says("runbook-look", `"ok"`, "stuck", "parked", "\nstuck\n", request)
	says("runbook-inbox", request, "stuck", "refund", "approve")
	says("runbook-decide", "completed")
	says("runbook-cancel")
	if view, err := c.Run(t.Context(), "never"); err != nil || view.Status != "cancelled" {
		t.Errorf("%+v, %v", view, err)
	}
	says("runbook-follow", "decided", "completed")
	says("runbook-check")
	says("runbook-retry")
	untilParked(t, c, "parked", last) // it was retried, and the secret is still missing
	says("runbook-after", "completed", request, "on-call")
	p.allUsed(t)
}

// TestAuditRunbook runs the commands of docs/runbook-audit.md, on a server that signs.
func TestAuditRunbook(t *testing.T) {
	p := open(t, "runbook-audit.md")
	h, live, kept := signing(t)
	s := h.shell()
	s.env = append(s.env, "FERMATA_URL="+live.URL, "FERMATA_TOKEN="+live.Token, "ACCOUNT=acme", "CHECKPOINTS="+kept)
	for block, word := range map[string]string{"audit-look": `"items":[]`, "audit-verify": "Valid", "audit-compare": "agree"} {
		if out := s.runBlock(t, p, block); !strings.Contains(out, word) {
			t.Errorf("%s does not print %q:\n%s", block, word, out)
		}
	}
	p.allUsed(t)
}

// signing returns a server that has signed the log of an account, and its checkpoint directory.
func signing(t *testing.T) (h testServer, live *process, kept string) {
	t.Helper()
	h = setUpServer(t, "sqlite:"+filepath.Join(t.TempDir(), "fermata.db"))
	settings, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	kept = filepath.Join(h.dir, "kept")
	folder, err := audit.CreateCheckpointDir(kept)
	if err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, "fermata.yaml", string(settings)+fmt.Sprintf("audit: {sign: {key: %q, dir: %q, every: 1s}}\n", filepath.Join(h.dir, "sign.key"), kept))
	live = h.serve(t)
	question(t, live.client(t), "refund-1")
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for last := []byte(nil); last == nil; {
		<-look.C
		if last, err = folder.Last("acme"); err != nil {
			t.Fatal(err)
		}
	}
	return h, live, kept
}

// approval creates an approval request of an external agent.
func approval(t *testing.T, c *client.Client, key, callback string) string {
	t.Helper()
	ask := api.CreateRequest{
		StateKey: key, Kind: "refund", Data: json.RawMessage(`{"amount":12}`),
		AnswerSchema: json.RawMessage(`{"type":"object","properties":{"verb":{"enum":["approve","reject"]},"reason":{"type":"string"}},"required":["verb"]}`),
	}
	if callback != "" {
		ask.Callback = &api.Callback{URL: callback}
	}
	outcome, err := c.CreateRequest(t.Context(), ask)
	return asked(t, outcome, err)
}

// parked creates a parked run: its answer should be sent, and the signing secret is missing. It
// returns the server and the id of the event.
func parked(t *testing.T, h testServer, key string) (*process, string) {
	t.Helper()
	settings, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, "fermata.yaml", string(settings)+"webhooks: {secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=], allow: [127.0.0.1]}\n")
	before := h.serve(t)
	id := approval(t, before.client(t), key, "http://127.0.0.1:9/answers")
	before.stop(t)
	write(t, h.dir, "fermata.yaml", string(settings))
	live := h.serve(t)
	c := live.client(t)
	if _, err := c.Decide(t.Context(), id, api.Decide{Answer: json.RawMessage(`{"verb":"approve"}`)}); err != nil {
		t.Log("deciding:", err)
	}
	return live, untilParked(t, c, key, "")
}

// untilParked follows a run after an event until it is parked.
func untilParked(t *testing.T, c *client.Client, key, after string) string {
	t.Helper()
	for event, err := range c.Events(t.Context(), key, after) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == "parked" {
			return event.ID
		}
	}
	t.Fatal("it is not parked")
	return ""
}
