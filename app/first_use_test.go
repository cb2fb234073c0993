package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// Tests of what a new user sees first.

func TestFirstUse_OutputSuggestsNextStep(t *testing.T) {
	call := startDemo(t, t.TempDir())
	for what, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"a waiting run":          {[]string{"run", "inproc:content-review", `{"topic":"tea"}`}, cli.ExitOK, "fermata approve|reject|answer REQUEST"},
		"a graph without prefix": {[]string{"run", "content-review"}, cli.ExitNotFound, "inproc:content-review"},
		"not a request":          {[]string{"show", "int_x"}, cli.ExitNotFound, "the account has no such object\nTry: fermata inbox --all --list\n"},
		"a run id instead":       {[]string{"approve", "article-tea"}, cli.ExitNotFound, "Try: fermata inbox --list\n"},
		"no such run":            {[]string{"watch", "article-teh"}, cli.ExitNotFound, "Try: fermata runs\n"},
		"the rules":              {[]string{"policy", "show"}, cli.ExitOK, "tiny-refunds"},
		"an unknown status":      {[]string{"runs", "--status", "waitng"}, cli.ExitUsage, "waiting"},
		"an ended run":           {[]string{"cancel", "article-tea"}, cli.ExitOK, "cancelled  article-tea"},
		// it used to wait forever
		"a negative timeout": {[]string{"watch", "article-mud", "--timeout=-1s"}, cli.ExitUsage, "Try: fermata help watch"},
		"a wrong flag":       {[]string{"keys", "create", "--x"}, cli.ExitUsage, "Try: fermata help keys create"},
		"a wrong input":      {[]string{"run", "x", "{"}, cli.ExitUsage, "Try: fermata help run"},
		"no command":         {[]string{"stroe"}, cli.ExitUsage, "Try: fermata help\n"},
	} {
		if exit, out, errOut := call(c.args...); exit != c.exit || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	id := inboxOf(t, call)["drop-users"].ID
	if _, out, _ := call("show", id); !strings.Contains(out, "fermata approve "+id) {
		t.Errorf("show:\n%s", out)
	}
}

// A Latin-1 terminal sends invalid UTF-8; the answer of a run used to differ from what was typed.
func TestFirstUse_InvalidUTF8IsReported(t *testing.T) {
	call := startDemo(t, t.TempDir())
	id := inboxOf(t, call)["article-tea"].ID
	for _, args := range [][]string{
		{"reject", id, "--reason", "gr\xfc\xdfe"},
		{"answer", id, "{\"action\":\"revise\",\"feedback\":\"gr\xfc\xdfe\"}"},
		{"run", "inproc:content-review", "{\"topic\":\"tea\"}", "--key=\xff"},
	} {
		exit, out, errOut := call(args...)
		if exit != cli.ExitUsage || out != "" || !strings.Contains(errOut, `is not UTF-8`) || !strings.Contains(errOut, `\x`) {
			t.Errorf("%q: %d\n%s%s", args, exit, out, errOut)
		}
	}
	if r, open := inboxOf(t, call)["article-tea"]; !open || r.ID != id {
		t.Error("the request was decided")
	}
}

// A truncated list says so; an empty one, too.
func TestFirstUse_TruncatedListIsMarked(t *testing.T) {
	call := startDemo(t, t.TempDir())
	for what, c := range map[string]struct {
		args []string
		exit int
		says string
		more bool
	}{
		"some runs":       {[]string{"runs", "--limit", "2"}, cli.ExitOK, "", true},
		"all runs":        {[]string{"runs"}, cli.ExitOK, "article-tea", false},
		"some requests":   {[]string{"inbox", "--limit", "1"}, cli.ExitOK, "", true},
		"very many":       {[]string{"runs", "--limit", "5000"}, cli.ExitOK, "article-tea", false},
		"open ones":       {[]string{"inbox", "--limit", "5000"}, cli.ExitOK, "article-tea", false},
		"invalid limit":   {[]string{"runs", "--limit=-1"}, cli.ExitUsage, "--limit", false},
		"nor of requests": {[]string{"inbox", "--limit=0"}, cli.ExitUsage, "--limit", false},
		"no grants":       {[]string{"grants", "list"}, cli.ExitOK, "no grants", false},
		"no runs":         {[]string{"runs", "--status", "superseded"}, cli.ExitOK, "no matching runs", false},
		"no keys":         {[]string{"inbox", "--kind", "none"}, cli.ExitOK, "no open requests", false},
	} {
		exit, out, errOut := call(c.args...)
		if exit != c.exit || !strings.Contains(out+errOut, c.says) || strings.Contains(out, "There are more; use --limit to show them.") != c.more {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	for _, list := range []string{"runs", "inbox"} { // a program took fifty items for all of them
		exit, out, errOut := call(list, "--limit", "1", "--json")
		if exit != cli.ExitOK || !json.Valid([]byte(out)) || !strings.Contains(errOut, "There are more; use --limit to show them.") {
			t.Errorf("%s, for programs: %d\n%s%s", list, exit, out, errOut)
		}
		if _, _, errOut := call(list, "--json"); errOut != "" {
			t.Errorf("%s are all, and: %s", list, errOut)
		}
	}
	for _, none := range [][]string{{"runs", "--status", "superseded", "--json"}, {"inbox", "--kind", "none", "--json"}} {
		if _, out, _ := call(none...); out != "[]\n" { // jq cannot iterate over null
			t.Errorf("%s: an empty list is %s", none[0], out)
		}
	}
	if _, out, _ := call("show", inboxOf(t, call)["article-tea"].ID); !strings.Contains(out, "answer, ask") {
		t.Errorf("it names a command that does not exist:\n%s", out)
	}
}

// Without waiting for the end, the output names the next command.
func TestFirstUse_PendingRun(t *testing.T) {
	got := cli.Explain(fmt.Errorf("%w: %q", client.ErrPending, "article-7"))
	if got.Exit != cli.ExitPending || got.Detail != `recorded and in progress: "article-7"; follow it with fermata watch` {
		t.Errorf("%+v", got)
	}
}

func TestFirstUse_NoServer(t *testing.T) {
	exit, _, errOut := call(t, "runs", "--token", "x", "--url", "http://127.0.0.1:1")
	if exit != cli.ExitUnavailable || !strings.Contains(errOut, "set its address with --url or FERMATA_URL") {
		t.Errorf("%d %s", exit, errOut)
	}
}

// After a restart of the demo, the other terminal has an old key.
func TestFirstUse_OldKey(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"status":401,"code":"unauthenticated","detail":"send a valid token"}`))
	}))
	defer server.Close()
	exit, _, errOut := call(t, "runs", "--url", server.URL, "--token", "fermata_old")
	if exit != cli.ExitRejected || !strings.Contains(errOut, "each start of fermata demo prints a new one") {
		t.Errorf("%d %s", exit, errOut)
	}
}

func TestFirstUse_HelpWithoutCommand(t *testing.T) {
	if exit, _, errOut := call(t, "help", "stroe"); exit != cli.ExitUsage || !strings.HasSuffix(errOut, "Try: fermata help\n") {
		t.Errorf("%d %s", exit, errOut)
	}
}

// Without an open clarification request there is nothing to reply to. That is not a usage error.
func TestReply_WithoutClarification(t *testing.T) {
	call := startDemo(t, t.TempDir())
	id := inboxOf(t, call)["drop-users"].ID
	if exit, _, errOut := call("reply", id, "yes"); exit != cli.ExitConflict || !strings.Contains(errOut, "no open clarification request: "+id) {
		t.Errorf("%d %s", exit, errOut)
	}
}

// State keys and kinds of external agents appear in lists. They could contain line breaks or change
// the text direction.
func TestLists_OneLinePerItem(t *testing.T) {
	call := startDemo(t, t.TempDir())
	const forged = "a\nint_1  payroll"
	asks := `{"kind":"refund","data":{"text":"x\u202etnuocca"}}`
	exit, out, errOut := call("run", "external:request", asks, "--key", forged)
	if exit != cli.ExitOK {
		t.Fatal(errOut)
	}
	lists := out
	for _, args := range [][]string{{"inbox"}, {"runs"}} {
		_, out, _ := call(args...)
		lists += out
	}
	if strings.Contains(lists, forged) || strings.Contains(lists, "\u202e") || strings.Count(lists, "a int_1  payroll") != 3 {
		t.Errorf("%s", lists)
	}
}

// Port 8080 may be in use.
func TestFirstUse_PortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	exit, _, errOut := call(t, "demo", "--data", t.TempDir(), "--addr", taken.Addr().String())
	if exit != cli.ExitUnavailable || !strings.Contains(errOut, "--addr 127.0.0.1:0 uses a free port") {
		t.Errorf("%d %s", exit, errOut)
	}
}

// A missing key is rejected like a wrong one, with a hint where to get one.
func TestFirstUse_NoToken(t *testing.T) {
	t.Setenv("FERMATA_TOKEN", "")
	exit, _, errOut := call(t, "runs")
	if exit != cli.ExitRejected || !strings.Contains(errOut, "FERMATA_TOKEN") || !strings.Contains(errOut, "fermata keys create") {
		t.Errorf("%d %s", exit, errOut)
	}
}

// A key is shown once. If its output fails, half of it may be visible, so it is revoked.
func TestKeys_RevokedIfOutputFails(t *testing.T) {
	at := "sqlite:" + filepath.Join(t.TempDir(), "fermata.db")
	if exit, _, errOut := call(t, "migrate", "--store", at); exit != cli.ExitOK {
		t.Fatal(errOut)
	}
	for _, more := range [][]string{nil, {"--json"}} {
		var errs strings.Builder
		args := append([]string{"keys", "create", "acme", "bot", "agent", "--store", at}, more...)
		if exit := run(t.Context(), args, fullDisk{}, &errs); exit == cli.ExitOK || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%d %s", exit, errs.String())
		}
	}
	if _, out, _ := call(t, "keys", "list", "acme", "--store", at); strings.Count(out, "revoked") != 2 || strings.Count(out, "bot") != 2 {
		t.Error(out)
	}
}

// fullDisk rejects all writes.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestKeys_CreateListRevoke(t *testing.T) {
	at := "sqlite:" + filepath.Join(t.TempDir(), "fermata.db")
	if exit, _, errOut := call(t, "migrate", "--store", at); exit != cli.ExitOK {
		t.Fatal(errOut)
	}
	if exit, out, errOut := call(t, "keys", "create", "acme", "bot", "agent", "--for=-1h", "--store", at); exit != cli.ExitUsage || out != "" {
		t.Errorf("a key with a negative validity never expired: %d %s%s", exit, out, errOut)
	}
	// as everywhere else
	for text, want := range map[string]int{"90d": cli.ExitOK, "8h": cli.ExitOK, "90": cli.ExitUsage} {
		if exit, _, errOut := call(t, "keys", "create", "acme", "ann", "approver", "--for", text, "--store", at); exit != want || exit == cli.ExitUsage && !strings.Contains(errOut, "90m, 24h or 30d") {
			t.Errorf("--for %s: %d %s", text, exit, errOut)
		}
	}
	if exit, _, errOut := call(t, "keys", "revoke", "acme", "x", "--store", at); exit != cli.ExitNotFound || !strings.Contains(errOut, `no such key "x" of acme`) {
		t.Errorf("%d %s", exit, errOut)
	}
	var made struct{ ID string }
	_, out, _ := call(t, "keys", "create", "acme", "bot", "agent", "--store", at, "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	if exit, out, _ := call(t, "keys", "revoke", "acme", made.ID, "--store", at, "--json"); exit != cli.ExitOK || out != `{"id":"`+made.ID+`","account":"acme","state":"revoked"}`+"\n" {
		t.Errorf("%d %s", exit, out)
	}
}

// Creating and revoking a key is audited.
func TestKeys_AreAudited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	at := "sqlite:" + path
	if exit, _, errOut := call(t, "migrate", "--store", at); exit != cli.ExitOK {
		t.Fatal(errOut)
	}
	var made operatorcmd.KeyRow
	_, out, _ := call(t, "keys", "create", "acme", "bot", "agent", "--for", "8h", "--store", at, "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	// it can be revoked once, and unknown keys cannot
	for _, id := range []string{made.ID, made.ID, "session_1"} {
		call(t, "keys", "revoke", "acme", id, "--store", at)
	}
	if exit, _, errOut := call(t, "keys", "create", "acme", strings.Repeat("x", 5000), "agent", "--store", at); exit != cli.ExitUsage {
		t.Errorf("a name that is too long for the log: %d %s", exit, errOut)
	}
	_, out, _ = call(t, "audit", "export", "--account", "acme", "--store", at)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("the log has %q", lines)
	}
	for i, want := range []audit.Body{audit.APIKeyMade{Key: made.ID, Name: "bot", Role: "agent", Until: audit.TimestampOf(*made.ExpiresAt)}, audit.APIKeyRevoked{Key: made.ID}} {
		got, err := audit.Parse([]byte(lines[i]))
		if err != nil || got.Body != want || got.Actor.Principal != "operator" || got.Actor.Via != "cli" || !strings.HasPrefix(got.Actor.Identity, "os:") {
			t.Errorf("%s: %v", lines[i], err)
		}
	}
}

// Sessions can be listed, so that they can be revoked.
func TestKeys_SessionsCanBeListedAndRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	at := "sqlite:" + path
	if exit, _, errOut := call(t, "migrate", "--store", at); exit != cli.ExitOK {
		t.Fatal(errOut)
	}
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = s.AddCredential(t.Context(), store.Credential{ID: "session_1", Account: "acme", Name: "ann", Role: "approver", Hash: make([]byte, 32), Expires: time.Now().Add(time.Hour)}, store.Writes{})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := call(t, "keys", "list", "acme", "--store", at); strings.Contains(out, "session_1") {
		t.Errorf("it is not a key:\n%s", out)
	}
	if _, out, _ := call(t, "keys", "list", "acme", "--sessions", "--store", at); !strings.Contains(out, "session_1  ann   approver") {
		t.Errorf("%s", out)
	}
	if exit, _, errOut := call(t, "keys", "revoke", "acme", "session_1", "--store", at); exit != cli.ExitOK {
		t.Error(errOut)
	}
	if _, out, _ := call(t, "keys", "list", "acme", "--sessions", "--store", at); !strings.Contains(out, "revoked") {
		t.Errorf("%s", out)
	}
}

// A missing directory was reported as a missing temporary file.
func TestStore_MissingDirectory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{
		{"serve", "--addr", "127.0.0.1:0", "--store", "sqlite:" + filepath.Join(folder, "fermata.db")},
		{"migrate", "--store", "sqlite:" + filepath.Join(folder, "fermata.db")},
		{"key", "make", filepath.Join(folder, "fermata.key")},
	} {
		if exit, _, errOut := call(t, args...); exit != cli.ExitNotFound || !strings.Contains(errOut, "no such directory "+folder+": create it first") {
			t.Errorf("%v: %d %s", args, exit, errOut)
		}
	}
}

// A missing store was reported as a missing key file, which alarms operators.
func TestStore_Missing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	for _, args := range [][]string{{"store", "retry", "acme", "x"}, {"check"}, {"store", "size"}, {"key", "rotate"}, {"keys", "list", "acme"}} {
		exit, _, errOut := call(t, append(args, "--store", "sqlite:"+path)...)
		if exit != cli.ExitNotFound || !strings.Contains(errOut, "no such store "+path+": choose another one with --store or --config, or create it with fermata migrate") {
			t.Errorf("%v: %d %s", args, exit, errOut)
		}
	}
}

// Listing keys with a newer program used to migrate the schema under running servers, and to create
// one in any database.
func TestStore_OnlyMigrateAndServersChangeTheSchema(t *testing.T) {
	old, err := os.ReadFile("../internal/store/sqlite/testdata/version-1.db")
	path := filepath.Join(t.TempDir(), "fermata.db")
	if err = errors.Join(err, os.WriteFile(path, old, 0o600), seal.CreateKeyFile(path+".key")); err != nil {
		t.Fatal(err)
	}
	older, none := "sqlite:"+path, pgtest.New(t)
	for _, args := range [][]string{{"keys", "list", "acme"}, {"audit", "verify", "--account", "acme"}, {"store", "size"}, {"audit", "reconcile", "--account", "acme"}, {"store", "export", "acme"}} {
		args = append(args, "--key-file", path+".key", "--store")
		if exit, _, errOut := call(t, append(args, older)...); exit != cli.ExitError || !strings.Contains(errOut, "the schema of the store is at version 1, and this program needs") {
			t.Errorf("%v: %d %s", args, exit, errOut)
		}
		if exit, _, errOut := call(t, append(args, none)...); exit != cli.ExitNotFound || !strings.Contains(errOut, "no such store in the schema fermata of that database") {
			t.Errorf("%v: %d %s", args, exit, errOut)
		}
	}
	if exit, _, errOut := call(t, "check", "--key-file", path+".key", "--store", none); exit != cli.ExitNotFound {
		t.Errorf("check: %d %s", exit, errOut)
	}
	for at, was := range map[string]string{older: "was at version 1", none: "was at version 0"} {
		if exit, out, errOut := call(t, "migrate", "--dry-run", "--store", at); exit != cli.ExitFindings || !strings.Contains(out, was) {
			t.Errorf("%d %s %s", exit, out, errOut)
		}
	}
}

func TestUnescapeHTML_RestoresCharacters(t *testing.T) {
	for data, want := range map[string]string{
		`"Approve \u0026 publish \u003Cnow\u003e"`: `"Approve & publish <now>"`,
		`"\\u0026 \" \u202e \u00e4"`:               `"\\u0026 \" \u202e \u00e4"`,
		`"\\\u0026"`:                               `"\\&"`,
	} {
		if got := cli.UnescapeHTML(json.RawMessage(data)); got != want {
			t.Errorf("%s is shown as %s", data, got)
		}
	}
}
