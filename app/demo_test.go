package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/demo"
)

// startDemo runs the demo until the test ends, and returns a function that calls the program.
func startDemo(t *testing.T, dir string, options ...Option) (call func(args ...string) (int, string, string)) {
	t.Helper()
	url, token := demoServer(t, dir, options...)
	return func(args ...string) (int, string, string) {
		t.Helper()
		var out, errOut bytes.Buffer
		code := run(t.Context(), append(args, "--url", url, "--token", token), &out, &errOut)
		return code, out.String(), errOut.String()
	}
}

// demoServer runs the demo until the test ends.
func demoServer(t *testing.T, dir string, options ...Option) (url, token string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		done <- run(ctx, []string{"demo", "--data", dir, "--addr", "127.0.0.1:0", "--every", "0s", "--json"}, w, &errs, options...)
		w.Close()
	}()
	var ready struct{ URL, Token, Account string }
	if err := json.NewDecoder(r).Decode(&ready); err != nil || ready.Account != demo.Account {
		t.Fatalf("%+v, %v, %s", ready, err, errs.String())
	}
	t.Cleanup(func() {
		stop()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("the demo ended with %d: %s", code, errs.String())
		}
	})
	return ready.URL, ready.Token
}

func inboxOf(t *testing.T, call func(...string) (int, string, string)) map[string]api.Request {
	t.Helper()
	code, out, errOut := call("inbox", "--json")
	var list []api.Request
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != cli.ExitOK {
		t.Fatal(code, out, errOut, err)
	}
	byKey := make(map[string]api.Request)
	for _, r := range list {
		if r.Kind != "refund" { // that one expires about now
			byKey[r.StateKey] = r
		}
	}
	return byKey
}

// A new user, from the first command to the last.
func TestDemo_DecideRequests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	call := startDemo(t, dir)
	open := inboxOf(t, call)
	if len(open) < 12 {
		t.Fatalf("%d are open", len(open))
	}
	if code, out, _ := call("show", open["drop-users"].ID); code != cli.ExitOK || !strings.Contains(out, "48213") || !strings.Contains(out, "cannot be brought back") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errOut := call("approve", open["drop-users"].ID); code != cli.ExitUsage || !strings.Contains(errOut, "--confirm") {
		t.Errorf("without the name of the table: %d %s", code, errOut)
	}
	if code, out, errOut := call("approve", open["drop-users"].ID, "--confirm", "users", "--reason", "it is a demo"); code != cli.ExitOK || !strings.Contains(out, "the table users is gone") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, _, errOut := call("reject", open["drop-users"].ID); code != cli.ExitConflict || !strings.Contains(errOut, "already_decided") || !strings.Contains(errOut, "by dana") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, errOut := call("answer", open["article-tea"].ID, `{"action":"revise","feedback":"sugar"}`); code != cli.ExitOK || !strings.Contains(out, "Now with sugar") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, _, errOut := call("answer", open["article-coffee"].ID, `{"action":"maybe"}`); code != cli.ExitUsage || !strings.Contains(errOut, "bad_answer") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, _ := call("reject", open["article-coffee"].ID, "--reason", "too bitter"); code != cli.ExitOK || !strings.Contains(out, "completed") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := call("run", "inproc:content-review", `{"topic":"milk"}`, "--key", "milk"); code != cli.ExitOK || !strings.Contains(out, "waiting") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errOut := call("cancel", "milk"); code != cli.ExitOK {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, _ := call("watch", "milk"); code != cli.ExitRunFailed || !strings.Contains(out, "cancelled") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := call("runs", "--status", "completed"); code != cli.ExitOK || strings.Count(out, "\n") != 6 {
		t.Errorf("%d %s", code, out)
	}
}

// One of the samples is parked, and continues after a retry.
func TestDemo_HasAParkedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	remote := startDemo(t, dir)
	for _, out, _ := remote("runs", "--status", "parked"); !strings.Contains(out, "poster-sale"); _, out, _ = remote("runs", "--status", "parked") {
		if err := cli.Sleep(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errOut := call(t, "store", "retry", demo.Account, "poster-sale", "--store", "sqlite:"+filepath.Join(dir, "fermata.db")); code != cli.ExitOK {
		t.Fatal(code, errOut)
	}
	if code, out, errOut := remote("watch", "poster-sale", "--timeout", "1m"); code != cli.ExitOK || !strings.Contains(out, "printed: Everything must go") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

// After a restart everything is unchanged, and the previous key is revoked.
func TestDemo_RestartKeepsRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var before func(...string) (int, string, string)
	var id string
	t.Run("first", func(t *testing.T) {
		before = startDemo(t, dir)
		id = inboxOf(t, before)["article-tea"].ID
	})
	after := startDemo(t, dir)
	if got := inboxOf(t, after); len(got) < 12 || got["article-tea"].ID != id {
		t.Errorf("%d are open", len(got))
	}
	if code, out, errOut := after("approve", id); code != cli.ExitOK || !strings.Contains(out, "Five things about tea") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestEscapeControls_ShowsControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 世": "plain ä 世", "\x1b[2J": `\u001b[2J`, "a\u202eb": `a\u202eb`, "a\u200bb": `a\u200bb`, "\u009b1m": `\u009b1m`, "a\nb\tc": "a\nb\tc",
		"a\u061cb\u00ad\u2061\u3164": `a\u061cb\u00ad\u2061\u3164`, "ok\U000e0041": `ok\u{e0041}`, "\u2028\ufffd\xff": `\u2028\ufffd\xff`,
	} {
		if got := cli.EscapeControls(text); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// An agent in any language creates a request over HTTP, a person answers, and the agent polls the
// answer.
func TestServe_ExternalAgentRequest(t *testing.T) {
	dir := t.TempDir()
	place := "sqlite:" + filepath.Join(dir, "f.db")
	ctx, stop := context.WithCancel(context.Background())
	var errs syncBuffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--store", place, "--addr", "127.0.0.1:0"}, io.Discard, &errs)
	}()
	url := errs.wait(t, "url=")
	t.Cleanup(func() {
		stop()
		if code := <-done; code != cli.ExitOK {
			t.Errorf("it ended with %d: %s", code, errs.String())
		}
	})
	_, key, errOut := call(t, "keys", "create", "acme", "ann", "admin", "--store", place)
	c, err := client.New(url, strings.TrimSpace(key))
	if err != nil || key == "" {
		t.Fatal(err, errOut)
	}
	outcome, err := c.CreateRequest(t.Context(), api.CreateRequest{StateKey: "ask-1", Kind: "refund", Data: json.RawMessage(`{"order":17}`), AnswerSchema: json.RawMessage(`{"type":"boolean"}`)})
	waiting, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", outcome, err)
	}
	if _, err := c.Decide(t.Context(), waiting.Interrupts[0].ID, api.Decide{Answer: json.RawMessage(`"yes"`)}); err == nil {
		t.Error("an invalid answer was accepted")
	}
	outcome, err = c.Decide(t.Context(), waiting.Interrupts[0].ID, api.Decide{Answer: json.RawMessage(`true`)})
	if completed, ok := outcome.(fermata.Completed); err != nil || !ok || !strings.Contains(string(completed.Output), "true") {
		t.Errorf("%#v, %v", outcome, err)
	}
}

// syncBuffer is the output so far.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// wait returns the word after a mark, once it is there.
func (b *syncBuffer) wait(t *testing.T, mark string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, rest, ok := strings.Cut(b.String(), mark); ok && strings.ContainsAny(rest, " \n") {
			return rest[:strings.IndexAny(rest, " \n")]
		}
	}
	t.Fatalf("no %s in %s", mark, b.String())
	return ""
}

// Long names of one agent must not widen all lines of the list.
func TestInbox_LongNamesAreTruncated(t *testing.T) {
	call := startDemo(t, t.TempDir())
	long := strings.Repeat("k", 300)
	if code, out, errOut := call("run", "inproc:content-review", `{"topic":"salt"}`, "--key", long); code != cli.ExitOK {
		t.Fatal(code, out, errOut)
	}
	code, out, _ := call("inbox", "--list")
	if code != cli.ExitOK || !strings.Contains(out, long[:50]) {
		t.Fatal(code, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 220 {
			t.Errorf("a line has %d characters: %s", len(line), line)
		}
	}
}

// Server times are UTC and local times are in the terminal's zone, so each must name its zone.
func TestShow_TimesHaveAZone(t *testing.T) {
	zone, _ := time.Now().Zone()
	call := startDemo(t, t.TempDir())
	id := inboxOf(t, call)["drop-users"].ID
	code, out, errOut := call("show", id)
	if code != cli.ExitOK {
		t.Fatal(code, errOut)
	}
	for _, row := range []string{"created", "deadline", "history"} {
		if !regexp.MustCompile(`(?m)^` + row + ` +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ` + regexp.QuoteMeta(zone)).MatchString(out) {
			t.Errorf("%s has no zone:\n%s", row, out)
		}
	}
}
