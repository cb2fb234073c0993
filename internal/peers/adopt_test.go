//go:build unix

package peers

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// pause starts a thread as another client would, and lets it wait for a person.
func (l *langGraph) pause(graph, input string) (thread string) {
	l.Helper()
	var created struct {
		ID string `json:"thread_id"`
	}
	l.call(http.MethodPost, "/threads", `{}`, &created)
	l.continueThread(created.ID, `{"assistant_id":"`+graph+`","input":`+input+`}`)
	return created.ID
}

func (l *langGraph) continueThread(thread, body string) (values map[string]any) {
	l.Helper()
	l.call(http.MethodPost, "/threads/"+thread+"/runs/wait", body, &values)
	return values
}

// status returns the status of a thread.
func (l *langGraph) status(thread string) string {
	l.Helper()
	var state struct{ Status string }
	l.call(http.MethodGet, "/threads/"+thread, "", &state)
	return state.Status
}

// A cancelled run ends its thread, unless another client has started it.
func TestCancel_EndsTheThreadOfLangGraph(t *testing.T) {
	t.Parallel()
	peer := newLangGraph(t)
	s := newServer(t, peer.settings("content_review")...)
	s.must("bot", "run", "langgraph:content_review", `{"topic":"tea"}`, "--key", "own")
	threads := peer.threads()
	if len(threads) != 1 || peer.status(threads[0]) != "interrupted" {
		t.Fatalf("the threads are %v", threads)
	}
	s.must("ops", "cancel", "own")
	s.until("the end of the thread", func() (bool, error) {
		var state struct{ Next []string }
		peer.call(http.MethodGet, "/threads/"+threads[0]+"/state", "", &state)
		return len(state.Next) == 0, fmt.Errorf("next are %v", state.Next)
	})
	// the development server keeps the status of the thread, but there is nothing to resume
	peer.continueThread(threads[0], `{"assistant_id":"content_review","command":{"resume":{"action":"approve"}}}`)
	if peer.work.count("publish") != 0 {
		t.Error("it was published")
	}
}

// The command adopts threads that are paused while it runs. A person decides about one, and cancels
// the run of the other: its thread stays paused, for the client that started it.
func TestAdopt_WatchesForPausedThreadsAndLeavesTheThreadOfACancelledRun(t *testing.T) {
	t.Parallel()
	peer := newLangGraph(t)
	s := newServer(t, peer.settings("review=content_review")...)
	watch := s.command("bot", "adopt", "langgraph", peer.url, "--every", "100ms", "--assistant", "content_review=review")
	watch.Stderr = os.Stderr
	stdout, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = watch.Process.Kill()
		_ = watch.Wait()
	})
	lines := bufio.NewScanner(stdout)
	adopted := func() (key string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the command has ended: %v", lines.Err())
		}
		columns := strings.Fields(lines.Text())
		if len(columns) != 3 || columns[0] != "adopted" || columns[2] != "langgraph:review" {
			t.Fatalf("it printed %q", lines.Text())
		}
		return columns[1]
	}

	thread := peer.pause("content_review", `{"topic":"coffee"}`)
	first := adopted()
	other := peer.pause("content_review", `{"topic":"tea"}`) // the command is running since before
	second := adopted()
	if first == second {
		t.Fatalf("both have the state key %s", first)
	}

	s.decideAs("ann", s.reviewed(first, 1), `{"action":"approve"}`)
	if end := s.ended(first); end.Status != "completed" || peer.work.count("publish") != 1 {
		t.Errorf("the first run is %s, and published %d times: %+v", end.Status, peer.work.count("publish"), end.Problem)
	}
	s.reviewed(second, 1)
	s.must("ops", "cancel", second)
	if end := s.ended(second); end.Status != "cancelled" {
		t.Errorf("the second run is %s", end.Status)
	}
	if status := peer.status(other); status != "interrupted" {
		t.Errorf("the thread of the cancelled run is %s", status)
	}
	if values := peer.continueThread(other, `{"assistant_id":"content_review","command":{"resume":{"action":"approve"}}}`); values["published"] != "A text about tea" {
		t.Errorf("the client that started the thread got %v", values)
	}

	audit, started := s.must("aud", "audit", "export"), 0
	for line := range strings.Lines(audit) {
		if strings.Contains(line, `"run.started"`) && strings.Contains(line, `"adopted":true`) {
			started++
		}
	}
	if started != 2 || strings.Contains(audit, thread) || strings.Contains(audit, other) {
		t.Errorf("the audit log has %d adopted runs, and thread ids: %v:\n%s", started, strings.Contains(audit, thread) || strings.Contains(audit, other), audit)
	}
}
