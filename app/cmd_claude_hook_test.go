package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/clientcmd"
)

// hookPolicy returns the policy of docs/claude.md.
func hookPolicy(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../docs/claude.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n   # policy.yaml\n") // in a list, so it is indented
	block, _, ok := strings.Cut(block, "   ```\n")
	if !ok {
		t.Fatal("docs/claude.md has no policy.yaml")
	}
	return []byte(block)
}

// hookEnv is a server with a policy, an agent with the hook, and an approver.
type hookEnv struct {
	*testing.T
	url    string
	keys   map[string]string
	ann    *client.Client
	logged *syncBuffer
}

func openHookEnv(t *testing.T) *hookEnv {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(rules, hookPolicy(t), 0o600); err != nil {
		t.Fatal(err)
	}
	c := settingsOf(t, "FERMATA_DESK_POLICY_FILE="+rules)
	running, logged := startOf(t, c)
	h := &hookEnv{T: t, url: running.URL, keys: make(map[string]string), logged: logged}
	for name, role := range map[string]string{"bot": "agent", "ann": "approver", "ops": "admin"} {
		code, key, errOut := call(t, "keys", "create", "acme", name, role, "--store", c.Store.URL.Reveal())
		if code != cli.ExitOK {
			t.Fatal(errOut)
		}
		h.keys[name] = strings.TrimSpace(key)
	}
	var err error
	if h.ann, err = client.New(h.url, h.keys["ann"]); err != nil {
		t.Fatal(err)
	}
	return h
}

const hookSession = "5b30ad4b-932a-460e-bce8-8a4a75b6fdea"

// hookInput is an event as the CLI sends it.
func hookInput(event, id, tool, input string) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"/srv/ann/t.jsonl","cwd":"/srv/ann","permission_mode":"default","hook_event_name":%q,`+
		`"tool_name":%q,"tool_input":%s,"tool_use_id":%q}`, hookSession, event, tool, input, id)
}

// withStdin sets the standard input for the rest of the test.
func withStdin(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = file
	t.Cleanup(func() {
		os.Stdin = before
		_ = file.Close()
	})
}

// hook runs the hook with an event, and returns its answer.
func (h *hookEnv) hook(event string, args ...string) clientcmd.HookReply {
	h.Helper()
	withStdin(h.T, event)
	return h.reply(append([]string{"--url", h.url, "--token", h.keys["bot"], "--wait", "1m"}, args...)...)
}

func (h *hookEnv) reply(args ...string) clientcmd.HookReply {
	h.Helper()
	code, out, errOut := call(h.T, append([]string{"claude-hook"}, args...)...)
	var answer struct {
		Output clientcmd.HookReply `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != cli.ExitOK || answer.Output.Event != clientcmd.EventBefore {
		h.Fatalf("%d %v: %q %s", code, err, out, errOut)
	}
	return answer.Output
}

// hookWhile runs the hook, and decide with the id of the request that it creates.
func (h *hookEnv) hookWhile(event string, decide func(id string), args ...string) clientcmd.HookReply {
	h.Helper()
	done := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range h.ann.QueueEvents(h.Context(), "") {
			if err != nil {
				h.Error(err)
				return
			}
			switch e.Type {
			case api.QueueReady:
				close(ready)
			case "opened":
				decide(e.Request)
				return
			}
		}
	}()
	<-ready
	reply := h.hook(event, args...)
	<-done
	return reply
}

func (h *hookEnv) decideWith(answer string) func(id string) {
	return func(id string) {
		if _, err := h.ann.Decide(h.Context(), id, api.Decide{Answer: json.RawMessage(answer)}); err != nil {
			h.Error(err)
		}
	}
}

// run returns the state of a call.
func (h *hookEnv) run(id string) (run struct {
	Status   string
	Requests []api.Request
	Receipt  *api.Receipt
}) {
	h.Helper()
	key := clientcmd.HookEvent{Session: hookSession, ID: id}.StateKey()
	request, err := http.NewRequestWithContext(h.Context(), http.MethodGet, h.url+"/api/v1/runs/"+url.PathEscape(key), nil)
	if err != nil {
		h.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+h.keys["ops"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&run); err != nil {
		h.Fatal(err)
	}
	return run
}

func TestClaudeHook_PolicyDecides(t *testing.T) {
	h := openHookEnv(t)
	status := hookInput(clientcmd.EventBefore, "toolu_1", "Bash", `{"command":"git status"}`)
	for range 2 { // the same call counts once
		if got := h.hook(status); got.Decision != clientcmd.HookAllow || !strings.Contains(got.Reason, "harmless") || got.Input != nil {
			t.Errorf("%+v", got)
		}
	}
	got := h.hook(hookInput(clientcmd.EventBefore, "toolu_2", "Bash", `{"command":"git push --force"}`), "--on-error", "ask")
	if got.Decision != clientcmd.HookDeny || !strings.Contains(got.Reason, "no-force") || !strings.Contains(got.Reason, "never force") {
		t.Errorf("%+v", got)
	}
	page, err := h.ann.Runs(t.Context(), client.Query{})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d runs, %v", len(page.Items), err)
	}
}

func TestClaudeHook_PersonDecides(t *testing.T) {
	h := openHookEnv(t)
	for name, c := range map[string]struct{ answer, decision, reason, input string }{
		"approved": {`{"verb":"approve"}`, clientcmd.HookAllow, "approved by ann", ""},
		"edited":   {`{"verb":"approve","args":{"command":"ls -l","description":"List files"}}`, clientcmd.HookAllow, "with changed arguments", `{"command":"ls -l","description":"List files"}`},
		"rejected": {`{"verb":"reject","reason":"use staging"}`, clientcmd.HookDeny, "rejected by ann: use staging", ""},
		"approved with a condition that the hook cannot check": {
			`{"verb":"approve","conditions":{"onlyIf":"args.command == 'ls'"}}`, clientcmd.HookDeny, "the hook cannot check its condition", "",
		},
	} {
		event := hookInput(clientcmd.EventBefore, "toolu_"+name, "Bash", `{"command":"ls","description":"List files"}`)
		got := h.hookWhile(event, h.decideWith(c.answer))
		if got.Decision != c.decision || !strings.Contains(got.Reason, c.reason) || string(got.Input) != c.input {
			t.Errorf("%s: %+v", name, got)
		}
		if again := h.hook(event); again.Decision != c.decision {
			t.Errorf("%s, again: %+v", name, again)
		}
		if request := h.run("toolu_" + name).Requests[0]; !strings.Contains(string(request.Data), `"summary":"List files"`) || strings.Contains(string(request.Data), "/srv/ann") {
			t.Errorf("%s: people see %s", name, request.Data)
		}
	}
	if strings.Contains(h.logged.String(), hookSession) {
		t.Error("the session id is in the log")
	}
}

func TestClaudeHook_ReceiptIsComparedWithTheApproval(t *testing.T) {
	h := openHookEnv(t)
	after := func(event, id, input string) {
		t.Helper()
		withStdin(t, hookInput(event, id, "Bash", input))
		if code, out, errOut := call(t, "claude-hook", "--url", h.url, "--token", h.keys["bot"]); code != cli.ExitOK || out != "" {
			t.Errorf("%d %q %s", code, out, errOut)
		}
	}
	h.hookWhile(hookInput(clientcmd.EventBefore, "toolu_1", "Bash", `{"command":"ls"}`), h.decideWith(`{"verb":"approve","args":{"command":"ls -l"}}`))
	after(clientcmd.EventAfter, "toolu_1", `{"command":"ls -l"}`)
	done := h.run("toolu_1")
	if r := done.Receipt; r == nil || r.Outcome != "done" || r.Digest != done.Requests[0].Decision.ApprovedDigest || r.Result != nil {
		t.Errorf("%+v", r)
	}
	// the CLI writes 1.0 as 1
	for id, ran := range map[string]string{"toolu_same": `{"command":"sleep","timeout":1}`, "toolu_other": `{"command":"sleep","timeout":2}`} {
		h.hookWhile(hookInput(clientcmd.EventBefore, id, "Bash", `{"command":"sleep","timeout":5}`), h.decideWith(`{"verb":"approve","args":{"command":"sleep","timeout":1.0}}`))
		after(clientcmd.EventAfter, id, ran)
		done := h.run(id)
		if matches := done.Receipt != nil && done.Receipt.Digest == done.Requests[0].Decision.ApprovedDigest; matches != (id == "toolu_same") {
			t.Errorf("%s: the receipt %+v matches the approval: %v", id, done.Receipt, matches)
		}
	}
	h.hookWhile(hookInput(clientcmd.EventBefore, "toolu_2", "Bash", `{"command":"false"}`), h.decideWith(`{"verb":"approve"}`))
	after(clientcmd.EventFailed, "toolu_2", `{"command":"false"}`)
	if r := h.run("toolu_2").Receipt; r == nil || r.Outcome != "failed" {
		t.Errorf("%+v", r)
	}
	after(clientcmd.EventAfter, "toolu_unknown", `{"command":"ls"}`) // the hook did not ask about it

	withStdin(t, hookInput(clientcmd.EventAfter, "toolu_1", "Bash", `{"command":"ls -l"}`))
	if code, _, errOut := call(t, "claude-hook", "--url", "http://127.0.0.1:1", "--token", "x"); code != cli.ExitError || !strings.Contains(errOut, "the receipt was not sent") {
		t.Errorf("%d %s", code, errOut) // exit code 2 would be an instruction for the model
	}
}

func TestClaudeHook_WithoutADecisionTheCallIsDenied(t *testing.T) {
	h := openHookEnv(t)
	event := func(id string) string { return hookInput(clientcmd.EventBefore, id, "Bash", `{"command":"ls"}`) }
	for on, want := range map[string]string{"deny": clientcmd.HookDeny, "ask": clientcmd.HookAsk} {
		got := h.hook(event("toolu_"+on), "--wait", "1s", "--on-error", on)
		if got.Decision != want || !strings.Contains(got.Reason, "no decision in time (1s)") {
			t.Errorf("on timeout: %+v", got)
		}
		if run := h.run("toolu_" + on); run.Status != "cancelled" || run.Requests[0].State != "withdrawn" {
			t.Errorf("the request is still open: %+v", run)
		}
		withStdin(t, event("toolu_2"))
		if got := h.reply("--url", "http://127.0.0.1:1", "--token", "x", "--on-error", on); got.Decision != want || !strings.Contains(got.Reason, "unreachable") {
			t.Errorf("unreachable: %+v", got)
		}
		withStdin(t, event("toolu_2"))
		if got := h.reply("--url", h.url, "--token", "wrong", "--on-error", on); got.Decision != want {
			t.Errorf("with a wrong key: %+v", got)
		}
		withStdin(t, event("toolu_2"))
		t.Setenv("FERMATA_TOKEN", "")
		if got := h.reply("--url", h.url, "--on-error", on); got.Decision != want || !strings.Contains(got.Reason, "FERMATA_TOKEN") {
			t.Errorf("without a key: %+v", got)
		}
	}
	// a person who ends the request denies the call
	got := h.hookWhile(event("toolu_3"), func(id string) {
		if _, err := h.ann.Act(t.Context(), id, client.ActionAbandon, api.RequestAction{Text: "not now"}); err != nil {
			t.Error(err)
		}
	}, "--on-error", "ask")
	if got.Decision != clientcmd.HookDeny {
		t.Errorf("abandoned: %+v", got)
	}
	// a call that is too large to be shown is denied, too
	got = h.hook(hookInput(clientcmd.EventBefore, "toolu_4", "Write", `{"content":"`+strings.Repeat("x", 300<<10)+`"}`), "--on-error", "ask")
	if got.Decision != clientcmd.HookDeny || !strings.Contains(got.Reason, "too_large") {
		t.Errorf("too large: %+v", got)
	}
}

// The server is restarted or overloaded while the hook waits.
func TestClaudeHook_WaitsThroughAnOutage(t *testing.T) {
	h := openHookEnv(t)
	target, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	created := make(chan struct{}, 1)
	const outage = 7 // more than the client's own retries
	var reads atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && reads.Add(1) <= outage {
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
		if r.Method == http.MethodPost {
			created <- struct{}{}
		}
	}))
	defer proxy.Close()
	got := h.hookWhile(hookInput(clientcmd.EventBefore, "toolu_1", "Bash", `{"command":"ls"}`), func(id string) {
		<-created
		h.decideWith(`{"verb":"approve"}`)(id)
	}, "--url", proxy.URL)
	if got.Decision != clientcmd.HookAllow || reads.Load() <= outage {
		t.Errorf("%+v after %d reads", got, reads.Load())
	}
}

// A person who interrupts the session ends the hook.
func TestClaudeHook_InterruptedWithdrawsTheRequest(t *testing.T) {
	h := openHookEnv(t)
	withStdin(t, hookInput(clientcmd.EventBefore, "toolu_1", "Bash", `{"command":"ls"}`))
	ctx, interrupt := context.WithCancel(t.Context())
	ready := make(chan struct{})
	go func() {
		defer interrupt()
		for e, err := range h.ann.QueueEvents(t.Context(), "") {
			if err != nil || e.Type == "opened" {
				return
			}
			close(ready)
		}
	}()
	<-ready
	var out, errOut bytes.Buffer
	if code := run(ctx, []string{"claude-hook", "--url", h.url, "--token", h.keys["bot"], "--wait", "1m"}, &out, &errOut); code != cli.ExitOK || !strings.Contains(out.String(), `"deny"`) {
		t.Errorf("%d %s%s", code, &out, &errOut)
	}
	if run := h.run("toolu_1"); run.Status != "cancelled" {
		t.Errorf("the request is still open: %+v", run)
	}
}

func TestClaudeHook_InvalidInputBlocks(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"not JSON":      "hello",
		"another event": hookInput("SessionStart", "toolu_1", "Bash", `{}`),
		"no tool":       hookInput(clientcmd.EventBefore, "toolu_1", "", `{}`),
		"no id":         hookInput(clientcmd.EventBefore, "", "Bash", `{}`),
		"no arguments":  hookInput(clientcmd.EventBefore, "toolu_1", "Bash", `null`),
	} {
		withStdin(t, text)
		if code, out, errOut := call(t, "claude-hook", "--on-error", "ask", "--url", "http://127.0.0.1:1", "--token", "x"); code != cli.ExitUsage || out != "" || errOut == "" {
			t.Errorf("%s: %d %q %q", name, code, out, errOut)
		}
	}
	for _, args := range [][]string{{"--on-error", "allow"}, {"--wait", "0s"}, {"--what"}} {
		if code, _, _ := call(t, append([]string{"claude-hook"}, args...)...); code != cli.ExitUsage {
			t.Errorf("%q: %d", args, code)
		}
	}
}

// printedHooks returns the hooks that --print-settings prints.
func printedHooks(t *testing.T, args ...string) map[string][]clientcmd.HookSettings {
	t.Helper()
	code, out, errOut := call(t, append([]string{"claude-hook", "--print-settings"}, args...)...)
	var settings struct {
		Hooks map[string][]clientcmd.HookSettings `json:"hooks"`
	}
	if err := json.Unmarshal([]byte(out), &settings); err != nil || code != cli.ExitOK || len(settings.Hooks) != 3 {
		t.Fatalf("%d %v: %s%s", code, err, out, errOut)
	}
	return settings.Hooks
}

func TestClaudeHook_PrintedSettings(t *testing.T) {
	hooks := printedHooks(t, "--wait", "5m", "--matcher", "Bash")
	before := hooks[clientcmd.EventBefore][0]
	if before.Matcher != "Bash" || before.Hooks[0].Timeout <= 300 || before.Hooks[0].Type != "command" || !strings.Contains(before.Hooks[0].Command, " --wait 5m0s") {
		t.Errorf("%+v", before)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// a missing program blocks the call: with another exit code the CLI would go on
	missing := strings.Replace(before.Hooks[0].Command, self, "/no/such/program", 1)
	if failed, ok := errors.AsType[*exec.ExitError](exec.Command("sh", "-c", missing).Run()); !ok || failed.ExitCode() != 2 {
		t.Errorf("%s: %v", missing, failed)
	}
	asking := printedHooks(t, "--on-error", "ask")[clientcmd.EventBefore][0].Hooks[0].Command
	if !strings.HasSuffix(asking, " --on-error ask") {
		t.Error(asking)
	}
}
