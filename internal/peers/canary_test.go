//go:build unix

package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/claudetest"
)

// Thread ids of LangGraph, session ids of the CLI and the paths of its private directories are in
// nothing that leaves the server: not in the API, on pages, in events, in webhooks, in commands, in
// the log or in errors. An agent that shows its own thread id is part of the test.
func TestI7_ThreadsSessionsAndPathsStayInside(t *testing.T) {
	t.Parallel()
	graph, cli := newLangGraph(t), newClaude(t, func(c claudetest.Conversation) []claudetest.Block {
		if len(c.Results) == 0 {
			return []claudetest.Block{claudetest.Call("mcp__work__pay", map[string]any{"n": 1})}
		}
		return []claudetest.Block{claudetest.Text("The result: " + c.Last().Text)}
	})
	started := cli.recordArguments()
	hooks := newRecorder(t)
	s := newServer(t, append(append(graph.settings("content_review,leaky,fails"), cli.settings("  - {name: pay, ask: [mcp__work__pay], mcpServers: TOOLS}\n")...), "FERMATA_WEBHOOKS_ALLOW=127.0.0.1")...)
	ops := s.as("ops")
	if _, err := ops.CreateWebhook(t.Context(), api.SaveWebhook{URL: hooks.URL + "/events", Types: []string{"request.*", "run.*"}}); err != nil {
		t.Fatal(err)
	}
	l := &leaks{server: s, browser: s.signInAs("admin", "admin")}

	answers := map[string]struct{ graph, input, answer, status string }{
		"leaky":  {"langgraph:leaky", `{"topic":"x"}`, `{"go":true}`, "completed"},
		"failed": {"langgraph:leaky", `{"topic":"x"}`, `{"go":false}`, "failed"},
		"review": {"langgraph:content_review", `{"topic":"x"}`, `{"action":"approve"}`, "completed"},
		"paid":   {"claude:pay", `{"prompt":"pay"}`, `{"verb":"approve"}`, "completed"},
		"denied": {"claude:pay", `{"prompt":"pay"}`, `{"verb":"reject","reason":"no"}`, "completed"},
	}
	for key, a := range answers {
		l.command("bot", "run", a.graph, a.input, "--key", key)
	}
	for key := range answers {
		l.requests = append(l.requests, s.reviewed(key, 1).ID)
		l.keys = append(l.keys, key)
	}
	l.look()
	for n, id := range l.requests {
		l.command("ann", "show", id)
		l.command("ann", "answer", id, `{"wrong":1}`)
		l.command("ann", "answer", id, answers[l.keys[n]].answer)
		l.command("ann", "answer", id, answers[l.keys[n]].answer) // it is decided
	}
	for key, a := range answers {
		if end := s.ended(key); end.Status != a.status {
			t.Errorf("%s is %s: %+v", key, end.Status, end.Problem)
		}
		l.command("ops", "runs", "show", key)
	}
	l.command("bot", "run", "langgraph:content_review", `{"fermata_adopt":"00000000000000000000000000000000"}`, "--key", "unknown")
	l.keys = append(l.keys, "unknown")
	l.look()
	l.command("aud", "audit", "export")
	s.until("webhooks", func() (bool, error) { return strings.Contains(hooks.String(), "run.completed"), nil })
	l.add("webhooks", hooks.String())
	l.add("the log of the server", s.log.String())

	secrets := append(graph.threads(), started()...)
	if len(secrets) < 5 {
		t.Fatalf("there are only %d threads, sessions and paths: %q", len(secrets), secrets)
	}
	for _, secret := range secrets {
		l.want(secret)
	}
	t.Logf("%d documents do not contain any of %d threads, sessions and paths", len(l.seen), len(secrets))
}

// recordArguments replaces the CLI by a script that records its arguments and starts it. It returns
// a function for the session ids and the private directories so far.
func (c *claude) recordArguments() func() []string {
	c.Helper()
	file := filepath.Join(c.TempDir(), "arguments")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%q\nexec %q \"$@\"\n", file, c.cli)
	c.cli = filepath.Join(c.TempDir(), "claude")
	if err := os.WriteFile(c.cli, []byte(script), 0o700); err != nil {
		c.Fatal(err)
	}
	return func() (found []string) {
		c.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			c.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`--(?:session-id|resume) (\S+)|--settings (\S+)/settings.json`).FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1]+match[2])
		}
		return found
	}
}

// threads returns the ids of all threads.
func (l *langGraph) threads() (ids []string) {
	l.Helper()
	var list []struct {
		ID string `json:"thread_id"`
	}
	l.call(http.MethodPost, "/threads/search", `{"limit":100}`, &list)
	for _, thread := range list {
		ids = append(ids, thread.ID)
	}
	return ids
}

// recorder is a webhook receiver.
type recorder struct {
	*httptest.Server
	buffer
}

func newRecorder(t testing.TB) *recorder {
	r := new(recorder)
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_ = request.Header.Write(r)
		_, _ = io.Copy(r, request.Body)
	}))
	t.Cleanup(r.Server.Close)
	return r
}

// leaks collects what leaves a server.
type leaks struct {
	*server
	browser        *browser
	keys, requests []string
	seen           map[string]string // by where it was seen
}

func (l *leaks) add(where, text string) {
	if l.seen == nil {
		l.seen = make(map[string]string)
	}
	l.seen[fmt.Sprint(len(l.seen)+1, " ", where)] = text
}

// command runs a command, which may fail.
func (l *leaks) command(who string, args ...string) {
	out, _ := l.server.command(who, args...).CombinedOutput()
	l.add("fermata "+strings.Join(args, " "), string(out))
}

// look reads everything that the API and the pages have now.
func (l *leaks) look() {
	l.Helper()
	response, err := http.Get(l.url + "/openapi.json")
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil || len(document.Paths) < 30 {
		l.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	for path, operations := range document.Paths {
		get, ok := operations["get"]
		if !ok {
			continue
		}
		_, streams := get.Responses["200"].Content["text/event-stream"]
		for _, filled := range l.fill(path) {
			l.fetch(filled, streams)
		}
	}
	for _, path := range []string{"/api/v1/requests?state=all", "/api/v1/runs/nothing", "/api/v1/requests/int_nothing"} {
		l.fetch(path, false)
	}
	l.crawl()
	if found := regexp.MustCompile(`metrics=(http\S+)`).FindStringSubmatch(l.log.String()); found != nil {
		metrics, err := http.Get(found[1])
		if err != nil {
			l.Fatal(err)
		}
		defer func() { _ = metrics.Body.Close() }()
		text, _ := io.ReadAll(metrics.Body)
		l.add("metrics", string(text))
	}
}

// fill returns the paths for all runs or requests.
func (l *leaks) fill(path string) (paths []string) {
	values := map[string][]string{"{stateKey}": l.keys, "{id}": l.requests, "{graphId}": {"langgraph:leaky", "claude:pay"}}
	for name, list := range values {
		if strings.Contains(path, name) {
			for _, value := range list {
				paths = append(paths, strings.Replace(path, name, value, 1))
			}
			return paths
		}
	}
	if strings.Contains(path, "{") {
		return nil
	}
	return []string{path}
}

// fetch reads a resource of the API. It reads a stream until it is silent.
func (l *leaks) fetch(path string, streams bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		l.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+l.server.keys["ops"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if streams {
		silent := time.AfterFunc(100*time.Millisecond, cancel)
		defer silent.Stop()
	}
	text, err := io.ReadAll(response.Body)
	if err != nil && !streams {
		l.Errorf("%s: %v", path, err)
	}
	l.add("GET "+path, string(text))
}

var link = regexp.MustCompile(`href="(/[^"#]*)`)

// maxPages limits the crawl.
const maxPages = 120

// crawl reads the pages that are linked from the inbox.
func (l *leaks) crawl() {
	l.Helper()
	next, known := []string{"/inbox", "/inbox?view=all", "/runs", "/graphs", "/audit", "/admin"}, make(map[string]bool)
	for _, id := range l.requests {
		next = append(next, "/requests/"+id)
	}
	for _, key := range l.keys {
		next = append(next, "/runs/"+key)
	}
	for len(next) > 0 && len(known) < maxPages {
		path := next[0]
		next = next[1:]
		if known[path] || strings.HasPrefix(path, "/static") || strings.HasPrefix(path, "/api/") || strings.Contains(path, "/events") || strings.HasPrefix(path, "/sign") {
			continue
		}
		known[path] = true
		request, err := http.NewRequest(http.MethodGet, l.url+path, nil)
		if err != nil {
			l.Fatal(err)
		}
		response, err := l.browser.http.Do(request)
		if err != nil {
			l.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			l.Error(err)
		}
		l.add("page "+path, string(text))
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			next = append(next, html.UnescapeString(found[1]))
		}
	}
	if len(known) < 15 {
		l.Errorf("there are only %d pages: %v", len(known), known)
	}
}

// want checks that a secret was not seen.
func (l *leaks) want(secret string) {
	l.Helper()
	for where, text := range l.seen {
		if at := strings.Index(text, secret); at >= 0 {
			l.Errorf("%s contains %s: …%s…", where, secret, text[max(0, at-80):min(len(text), at+80)])
		}
	}
}
