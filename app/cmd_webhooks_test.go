package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
)

// An admin subscribes a URL, tests it, rotates its secret and removes it.
func TestWebhooks_Commands(t *testing.T) {
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(receiver.Close)
	o := openDeskEnvWith(t, "\ndesk:\n", "\nwebhooks: {allow: [127.0.0.1]}\ndesk:\n")
	run := func(want int, contains string, args ...string) string {
		t.Helper()
		code, out, errOut := o.as("ops", append([]string{"webhooks"}, args...)...)
		if code != want || !strings.Contains(out+errOut, contains) {
			t.Fatalf("fermata webhooks %q: %d, no %q in %s%s", args, code, contains, out, errOut)
		}
		return out
	}
	run(cli.ExitOK, "no webhooks", "list")
	var made api.WebhookSecret
	if out := run(cli.ExitOK, "whsec_", "add", receiver.URL, "--type", "request.*", "--type", "run.failed", "--graph", "inproc:refund", "--json"); json.Unmarshal([]byte(out), &made) != nil {
		t.Fatal(out)
	}
	id := made.Webhook.ID
	if out := run(cli.ExitOK, "request.*, run.failed; graph inproc:refund", "list"); strings.Contains(out, "whsec_") || !strings.Contains(out, "no event sent yet") {
		t.Error(out)
	}
	run(cli.ExitOK, "accepted the test event", "test", id)
	status = http.StatusForbidden
	run(cli.ExitError, "http_403", "test", id)
	if out := run(cli.ExitOK, "not shown again", "rotate", id); strings.Contains(out, made.Secret) {
		t.Error("the secret is the same")
	}
	run(cli.ExitUsage, "unknown event type", "add", receiver.URL, "--type", "request.eaten")
	run(cli.ExitUsage, "not allowed", "add", "http://10.0.0.1/")
	run(cli.ExitOK, "removed", "remove", id)
	run(cli.ExitNotFound, "not_found", "test", id)
	if code, out, errOut := o.as("bob", "webhooks", "list"); code == cli.ExitOK {
		t.Errorf("an approver lists webhooks: %s%s", out, errOut)
	}
}
