package app

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/testtier"
)

// langGraphServer starts LangGraph's development server with the graphs of provider/langgraph.
func langGraphServer(t *testing.T) (url string) {
	t.Helper()
	testtier.Needs(t, "LangGraph's server (Node)")
	command := exec.Command("node", "server.mjs", t.TempDir())
	command.Dir = "../provider/langgraph/testdata/peer"
	stdin, err := command.StdinPipe() // its end ends the server
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var ready struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready.URL != "" {
			return ready.URL
		}
	}
	t.Fatal("LangGraph's server did not start; make need-langgraph-server installs it")
	return ""
}

func callLangGraph(t *testing.T, url, body string, into any) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(data, into) != nil {
		t.Fatalf("status %d, %v: %s", response.StatusCode, err, data)
	}
}

// The content review runs on LangGraph from the same commands, also if another client has started
// it.
func TestSeed000_LangGraphRunsAndAdoptedThreadsAreDecidedWithTheSameCommands(t *testing.T) {
	peer := langGraphServer(t)
	c := settingsOf(t, "FERMATA_PROVIDERS_LANGGRAPH_URL="+peer, "FERMATA_PROVIDERS_LANGGRAPH_ASSISTANTS=content_review")
	running, logged := startOf(t, c)
	o := &deskEnv{T: t, url: running.URL, keys: make(map[string]string)}
	for name, role := range map[string]string{"bot": "agent", "ann": "approver"} {
		code, key, errOut := call(t, "keys", "create", "acme", name, role, "--store", c.Store.URL.Reveal())
		if code != cli.ExitOK {
			t.Fatal(errOut)
		}
		o.keys[name] = strings.TrimSpace(key)
	}
	var thread struct {
		ID string `json:"thread_id"`
	}
	callLangGraph(t, peer+"/threads", `{}`, &thread)
	var paused any
	callLangGraph(t, peer+"/threads/"+thread.ID+"/runs/wait", `{"assistant_id":"content_review","input":{"topic":"coffee"}}`, &paused)

	must := func(who string, args ...string) string {
		t.Helper()
		code, out, errOut := o.as(who, args...)
		if code != cli.ExitOK {
			t.Fatalf("%q: %d\n%s%s", args, code, out, errOut)
		}
		if strings.Contains(out+errOut, thread.ID) {
			t.Errorf("%q prints the thread id:\n%s%s", args, out, errOut)
		}
		return out
	}
	if code, out, errOut := o.as("bot", "adopt", "langgraph", peer, "--once", "--assistant", "content_reviw=content_review"); code != cli.ExitUsage || out != "" || !strings.Contains(errOut, `no graph "content_reviw"; it has`) || !strings.Contains(errOut, "content_review") {
		t.Errorf("a misspelled graph: %d\n%s%s", code, out, errOut)
	}
	if out := must("bot", "adopt", "langgraph", peer, "--once", "--assistant", "content_review=content_review"); !strings.HasPrefix(out, "adopted") {
		t.Fatalf("it printed %q", out)
	}
	if out := must("bot", "adopt", "langgraph", peer, "--once"); out != "" {
		t.Errorf("the thread was adopted again: %q", out)
	}
	must("bot", "run", "langgraph:content_review", `{"topic":"tea"}`, "--key", "tea-1")
	var open []api.Request
	if err := json.Unmarshal([]byte(must("ann", "inbox", "--json")), &open); err != nil || len(open) != 2 {
		t.Fatalf("the inbox has %d requests, %v", len(open), err)
	}
	for _, request := range open {
		out := must("ann", "answer", request.ID, `{"action":"revise","feedback":"shorter"}`)
		if !strings.Contains(out, "draft-2") {
			t.Errorf("after the revision: %s", out)
		}
	}
	if err := json.Unmarshal([]byte(must("ann", "inbox", "--json")), &open); err != nil || len(open) != 2 {
		t.Fatalf("the inbox has %d requests, %v", len(open), err)
	}
	var published string
	for _, request := range open {
		published += must("ann", "answer", request.ID, `{"action":"approve"}`)
	}
	for _, topic := range []string{"coffee", "tea"} {
		if !strings.Contains(published, `"published":"A text about `+topic+`, shorter"`) {
			t.Errorf("the outcomes are %s", published)
		}
	}
	if strings.Contains(logged.String(), thread.ID) {
		t.Error("the thread id is in the log")
	}
}
