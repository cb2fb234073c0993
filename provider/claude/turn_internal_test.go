package claude

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func questionGraph() *Graph {
	return &Graph{Name: "g", Ask: []string{"Bash"}, Tools: []string{"Read", "mcp__web__*"}, Questions: []Question{{
		Kind: "review", Input: json.RawMessage(`{"type":"object","required":["draft"]}`), Answer: json.RawMessage(`{"type":"object"}`),
	}}}
}

func TestHook_Decisions(t *testing.T) {
	waiting := &call{ID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{}`)}
	for name, c := range map[string]struct {
		call     hookCall
		deferred *call
		decision string
		reason   string
	}{
		"a tool that asks":               {call: hookCall{Tool: "Bash", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "defer"},
		"the same call again":            {call: hookCall{Tool: "Bash", ID: "toolu_1", Input: json.RawMessage(`{}`)}, deferred: waiting, decision: "defer"},
		"another one while it waits":     {call: hookCall{Tool: "Bash", ID: "toolu_2", Input: json.RawMessage(`{}`)}, deferred: waiting, decision: "deny", reason: textSibling},
		"a free tool while it waits":     {call: hookCall{Tool: "Read", ID: "toolu_2", Input: json.RawMessage(`{}`)}, deferred: waiting, decision: "deny", reason: textSibling},
		"a free tool":                    {call: hookCall{Tool: "Read", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "allow"},
		"a tool of a pattern":            {call: hookCall{Tool: "mcp__web__get", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "allow"},
		"an unknown tool":                {call: hookCall{Tool: "Write", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "deny", reason: textNoTool},
		"an unknown tool of the server":  {call: hookCall{Tool: "mcp__fermata__other", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "deny", reason: textNoTool},
		"a subagent":                     {call: hookCall{Tool: "Bash", ID: "toolu_2", AgentID: "agent_1", Input: json.RawMessage(`{}`)}, decision: "deny", reason: textSubagent},
		"arguments that are too large":   {call: hookCall{Tool: "Bash", ID: "toolu_2", Input: json.RawMessage(`"` + strings.Repeat("x", maxShown) + `"`)}, decision: "deny", reason: textTooLarge},
		"arguments with a duplicate":     {call: hookCall{Tool: "Bash", ID: "toolu_2", Input: json.RawMessage(`{"command":"a","command":"b"}`)}, decision: "deny"},
		"a question":                     {call: hookCall{Tool: "mcp__fermata__review", ID: "toolu_2", Input: json.RawMessage(`{"draft":"x"}`)}, decision: "defer"},
		"a question in the wrong format": {call: hookCall{Tool: "mcp__fermata__review", ID: "toolu_2", Input: json.RawMessage(`{}`)}, decision: "deny"},
	} {
		turn := &turn{graph: questionGraph(), deferred: c.deferred}
		got := turn.hook(t.Context(), c.call)
		if got.Decision != c.decision || c.reason != "" && got.Reason != c.reason || got.Decision == "deny" && got.Reason == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A person was shown the arguments; the CLI must not resume with others (I6).
func TestI6_ResumedCallWithOtherArgumentsIsDenied(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := &turn{graph: questionGraph(), resumes: true, cancel: cancel, call: call{ID: "toolu_1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}
	turn.decide = func(context.Context) (reply, error) {
		t.Error("the decision was used")
		return reply{Decision: decisionAllow}, nil
	}
	got := turn.hook(ctx, hookCall{Tool: "Bash", ID: "toolu_1", Input: json.RawMessage(`{"command":"rm -rf /"}`)})
	if got.Decision != decisionDeny || context.Cause(ctx) == nil {
		t.Errorf("it is %+v, and the process goes on: %v", got, context.Cause(ctx) == nil)
	}
}

// The tool of a question returns the answer only to the call that was answered, and its server only
// to the process with its token.
func TestServer_AnswersOnlyTheDecidedCallOfItsProcess(t *testing.T) {
	answered := &turn{graph: questionGraph(), resumes: true, call: call{ID: "toolu_1", Tool: "mcp__fermata__review"}, answer: json.RawMessage(`{"ok":true}`)}
	if _, ok := answered.question("toolu_1", "review"); ok {
		t.Error("the answer is given before the hook allowed the call")
	}
	answered.answers = true
	if text, ok := answered.question("toolu_1", "review"); !ok || string(text) != `{"ok":true}` {
		t.Errorf("the answer is %s, %v", text, ok)
	}
	for _, other := range [][2]string{{"toolu_2", "review"}, {"toolu_1", "other"}, {"", "review"}} {
		if _, ok := answered.question(other[0], other[1]); ok {
			t.Errorf("the answer is given to %q", other)
		}
	}
	s, err := serve(t.Context(), answered)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, path := range []string{"/hook", "/mcp"} {
		response, err := http.Post(s.url+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", path, response.StatusCode)
		}
	}
}

func TestSweep_RemovesOnlyDirectoriesOfKilledProcesses(t *testing.T) {
	parent := t.TempDir()
	killed, used := filepath.Join(parent, dirPrefix+"1"), ""
	dir, err := newDirs(parent, "")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.remove()
	used = dir.root
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{killed, filepath.Join(parent, "other")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{killed, used, filepath.Join(parent, "other")} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent)
	for path, want := range map[string]bool{killed: false, used: true, filepath.Join(parent, "other"): true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s remains: %v", filepath.Base(path), err == nil)
		}
	}
}
