package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// An approver sees the graph of a run with its waiting nodes marked.
func TestGraphs_RunGraphMarksWaitingNodes(t *testing.T) {
	s := open(t, nil)
	drawn := func(path string) (g api.Graph, waits []string) {
		t.Helper()
		got := s.call("approver@acme", "GET", path, "")
		if err := json.Unmarshal([]byte(got.body), &g); err != nil || got.status != 200 {
			t.Fatalf("%+v, %v", got, err)
		}
		if g.ID != "inproc:content-review" || g.Drawing == nil || len(g.Drawing.Nodes) != 3 || len(g.Drawing.Edges) != 3 {
			t.Fatalf("%s: %s", path, got.body)
		}
		for _, n := range g.Drawing.Nodes {
			if n.Waiting {
				waits = append(waits, n.ID)
			}
		}
		return g, waits
	}
	for _, key := range []string{"k", "k/2"} {
		if got := s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":%q,"input":{"topic":"tea"}}`, key)); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	if g, waits := drawn("/api/v1/graphs/inproc:content-review"); len(waits) != 0 || g.InputSchema == nil {
		t.Errorf("the graph itself waits at %v: %+v", waits, g)
	}
	for _, path := range []string{"/api/v1/runs/k/graph", "/api/v1/runs/k%2F2/graph"} {
		if _, waits := drawn(path); len(waits) != 1 || waits[0] != "human_review" {
			t.Errorf("%s waits at %v", path, waits)
		}
	}
	for _, path := range []string{"/api/v1/requests", "/api/v1/runs/k", "/api/v1/requests/" + s.openRequests("acme")[0].ID} {
		if got := s.call("approver@acme", "GET", path, ""); !strings.Contains(got.body, `"next":[["human_review"],[]]`) {
			t.Errorf("%s does not list the next nodes: %s", path, got.body)
		}
	}
	if got := s.chat("approver@acme", `{"stateKey":"k","resumeId":"1","resumeValue":{"action":"approve"}}`); got.field("status") != "completed" {
		t.Fatalf("%+v", got)
	}
	if got := s.call("approver@acme", "GET", "/api/v1/runs/k", ""); strings.Contains(got.body, `"next"`) {
		t.Errorf("an ended run continues: %s", got.body)
	}
	if _, waits := drawn("/api/v1/runs/k/graph"); len(waits) != 0 {
		t.Errorf("an ended run waits at %v", waits)
	}
	if _, waits := drawn("/api/v1/graphs/inproc:content-review"); len(waits) != 0 {
		t.Errorf("the marks of a run stay: %v", waits)
	}
	if got := s.call("approver@acme", "GET", "/api/v1/graphs", ""); strings.Contains(got.body, "drawing") {
		t.Errorf("the list has drawings: %s", got.body)
	}
}

func TestGraphs_UnknownGraphIsNotFound(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", `{"graphId":"inproc:content-review","stateKey":"k","input":{"topic":"tea"}}`)
	for path, want := range map[string]struct {
		who, says string
		status    int
	}{
		"/api/v1/graphs/inproc:nothing":   {"approver@acme", "unknown_graph", 404},
		"/api/v1/graphs/nothing":          {"approver@acme", "unknown_graph", 404},
		"/api/v1/runs/nothing/graph":      {"approver@acme", "not_found", 404},
		"/api/v1/runs/k/graph":            {"approver@other", "not_found", 404},
		"/api/v1/graphs/external:request": {"approver@acme", "external:request", 200},
	} {
		if got := s.call(want.who, "GET", path, ""); got.status != want.status || !strings.Contains(got.body, `"`+want.says+`"`) || strings.Contains(got.body, "drawing") {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
