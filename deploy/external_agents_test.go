package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// TestExternalAgents runs the commands of docs/external-agents.md: an agent that uses only curl.
func TestExternalAgents(t *testing.T) {
	p := open(t, "external-agents.md")
	h := setUpServer(t, "sqlite:"+filepath.Join(t.TempDir(), "fermata.db"))
	s := h.shell()
	s.runBlock(t, p, "secret")
	settings, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, "fermata.yaml", string(settings)+fmt.Sprintf("webhooks: {secretsFile: %q, allow: [\"127.0.0.1\"]}\n", filepath.Join(h.dir, "webhook-secrets")))
	live := h.serve(t)
	s.env = append(s.env, "FERMATA_URL="+live.URL, "FERMATA_TOKEN="+live.Token)
	c := live.client(t)

	var outcome struct{ Interrupts []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.runBlock(t, p, "ask")), &outcome); err != nil || len(outcome.Interrupts) != 1 {
		t.Fatalf("%+v, %v", outcome, err)
	}
	id := outcome.Interrupts[0].ID
	if _, err := c.Act(t.Context(), id, client.ActionClarify, api.RequestAction{Text: "was all of it broken?"}); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "REQUEST="+id)
	if out := s.runBlock(t, p, "reply"); !strings.Contains(out, "One of two cups") {
		t.Errorf("%s", out)
	}
	// a shell may interpret its line break
	approved(t, c, id, `{"action":"pay","why":"It broke.\n\"Twice.\""}`)
	question(t, c, "refund-18")
	s.runBlock(t, p, "cancel")
	if out := s.runBlock(t, p, "pull"); strings.Count(out, "\n") != 2 || !strings.Contains(out, `"why":"It broke.\n\"Twice.\""`) || !strings.Contains(out, `"withdrawn":true`) {
		t.Errorf("%s", out)
	}
	if out := s.runBlock(t, p, "pull"); out != "" {
		t.Errorf("once more: %s", out)
	}
	keepsCursor(t, s, p)
	s.env = append(s.env, called(t, c, h.dir)...)
	if out := s.runBlock(t, p, "verify"); out != "genuine\n" {
		t.Errorf("%s", out)
	}
	outcomeOf, err := c.CreateRequest(t.Context(), api.CreateRequest{StateKey: "drop-1", Kind: "approval", Data: json.RawMessage(`{"action":"drop-table","args":{"name":"users"}}`)})
	approved(t, c, asked(t, outcomeOf, err), `{"verb":"approve"}`)
	digest := strings.TrimSpace(s.runBlock(t, p, "digest"))
	if out := s.runBlock(t, p, "receipt"); len(digest) != 64 || !strings.Contains(out, `"digest":"`+digest+`","outcome":"done"`) {
		t.Errorf("%s, %s", digest, out)
	}
	p.allUsed(t)
}

// keepsCursor polls an unreachable server, in a shell that continues after an error. Without the
// cursor every answer would be processed again.
func keepsCursor(t *testing.T, s shell, p *page) {
	t.Helper()
	cursor := func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, "cursor"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := cursor()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", p.blocks["pull"])
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "FERMATA_URL=http://127.0.0.1:1", "FERMATA_TOKEN=none")
	if out, err := cmd.Output(); err != nil || len(out) > 0 {
		t.Errorf("%s, %v", out, err)
	}
	if now := cursor(); now != before || strings.TrimSpace(now) == "" {
		t.Errorf("the cursor was %q, and is %q", before, now)
	}
}

// called sends an answer to a receiver, which writes the body to a file. It returns the headers.
func called(t *testing.T, c *client.Client, dir string) (env []string) {
	t.Helper()
	got := make(chan []string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "body"), body, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
		got <- []string{"ID=" + r.Header.Get("webhook-id"), "TIMESTAMP=" + r.Header.Get("webhook-timestamp"), "SIGNATURE=" + r.Header.Get("webhook-signature")}
	}))
	t.Cleanup(receiver.Close)
	outcome, err := c.CreateRequest(t.Context(), api.CreateRequest{Kind: "refund", Data: json.RawMessage(`{"order":19}`), Callback: &api.Callback{URL: receiver.URL}})
	approved(t, c, asked(t, outcome, err), `"pay"`)
	return <-got
}
