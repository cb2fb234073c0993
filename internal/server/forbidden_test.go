package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// An agent that tries to approve its own request is rejected, and the attempt is audited.
func TestForbidden_MissingRoleIsAudited(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	for path, body := range map[string]string{
		"/api/v1/requests/" + id + "/decision": `{"resumeId":"r1","answer":{"verb":"approve"}}`,
		"/api/v1/requests/" + id + "/claim":    `{}`,
		"/api/v1/requests/" + id + "/grant":    `{"seconds":60,"uses":1}`,
		"/api/v1/ai/chat":                      fmt.Sprintf(`{"stateKey":"drop-1","resumeId":"r1","resumeTargets":{%q:{"verb":"approve"}}}`, id),
		"/api/v1/requests/int_of_nobody/claim": `{}`,
		"/api/v1/requests/" + id + "/view":     `{}`, // a view is not counted, and not rejected
	} {
		if got := s.call("agent@acme", "POST", path, body); got.status != 403 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.call("agent@other", "POST", "/api/v1/requests/"+id+"/claim", `{}`); got.status != 403 {
		t.Errorf("I8: %d", got.status)
	}
	var acts []string
	for line := range strings.Lines(s.call("auditor@acme", "GET", "/api/v1/audit", "").body) {
		if strings.Contains(line, `"kind":"request.refused"`) {
			_, body, _ := strings.Cut(line, `"body":`)
			acts = append(acts, strings.TrimSpace(body))
			if !strings.Contains(line, `"principal":"agent","kind":"agent"`) || !strings.Contains(line, `"request":"`+id+`"`) {
				t.Errorf("who, and where? %s", line)
			}
		}
	}
	for act, want := range map[string]int{"decide": 2, "claim": 1, "remember": 1} {
		if got := strings.Count(strings.Join(acts, "\n"), fmt.Sprintf(`{"act":%q,"why":"no_role"}`, act)); got != want {
			t.Errorf("%d lines of %s in\n%s", got, act, strings.Join(acts, "\n"))
		}
	}
	if len(acts) != 4 {
		t.Errorf("%d lines", len(acts))
	}
	if others := s.call("auditor@other", "GET", "/api/v1/audit", "").body; others != "" {
		t.Errorf("I8: %s", others)
	}
}

// Actions of an agent used to be recorded as those of a person, without the key.
func TestRuns_AuditNamesTheAgent(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	if got := s.call("agent@acme", "POST", "/api/v1/runs/drop-1/cancel", ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(s.call("auditor@acme", "GET", "/api/v1/audit", "").body) {
		for _, kind := range []string{"run.started", "run.ended"} {
			if !strings.Contains(line, `"kind":"`+kind+`"`) {
				continue
			}
			kinds[kind]++
			if !strings.Contains(line, `"actor":{"principal":"agent","kind":"agent","via":"http"`) {
				t.Errorf("who? %s", line)
			}
		}
	}
	if kinds["run.started"] != 1 || kinds["run.ended"] != 1 {
		t.Errorf("the log has %v", kinds)
	}
}
