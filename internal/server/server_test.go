package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
)

// The whole flow, as the first client of the API used it.
func TestChat_StartReviseApprove(t *testing.T) {
	s := open(t, nil)
	first := s.chat("agent@acme", startDemo)
	if first.status != 200 || first.field("status") != "needs_input" || first.field("stateKey") != "demo-1" {
		t.Fatalf("%+v", first)
	}
	second := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"revise","feedback":"hot"}}`)
	if second.field("status") != "needs_input" || !strings.Contains(second.body, "about tea, hot") {
		t.Fatalf("%+v", second)
	}
	third := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"2","resumeValue":{"action":"approve"}}`)
	if third.status != 200 || third.field("status") != "completed" || third.field("content") != "tea!" {
		t.Fatalf("%+v", third)
	}
	if again := s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"2","resumeValue":{"action":"approve"}}`); again.body != third.body {
		t.Errorf("the repeated request: %+v", again)
	}
}

func TestChat_InvalidRequestsAreProblems(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	for name, c := range map[string]struct {
		token, body string
		status      int
		code        string
	}{
		"nobody":             {"", startDemo, 401, "unauthenticated"},
		"no JSON":            {"agent@acme", `{`, 400, "bad_request"},
		"duplicate key":      {"agent@acme", `{"graphId":"a","graphId":"b"}`, 400, "bad_request"},
		"case variant":       {"agent@acme", `{"graphid":"a"}`, 400, "bad_request"},
		"unknown key":        {"agent@acme", `{"graphId":"a","x":1}`, 400, "bad_request"},
		"trailing data":      {"agent@acme", startDemo + `{}`, 400, "bad_request"},
		"invalid UTF-8":      {"agent@acme", "{\"graphId\":\"\xff\"}", 400, "bad_request"},
		"unknown graph":      {"agent@acme", `{"graphId":"inproc:x","input":{}}`, 404, "unknown_graph"},
		"in use":             {"agent@acme", strings.Replace(startDemo, "tea", "coffee", 1), 409, "state_key_in_use"},
		"start as approver":  {"approver@acme", startDemo, 403, "forbidden"},
		"resume as agent":    {"agent@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, 403, "forbidden"},
		"another account":    {"approver@other", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`, 404, "not_found"},
		"a bad answer":       {"approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":"approve"}`, 400, "bad_answer"},
		"nothing to answer":  {"approver@acme", `{"stateKey":"demo-1","resumeId":"1"}`, 400, "bad_request"},
		"both at once":       {"admin@acme", `{"graphId":"inproc:content-review","stateKey":"demo-1","resumeId":"1","resumeValue":{}}`, 400, "bad_request"},
		"unknown question":   {"approver@acme", `{"stateKey":"demo-1","resumeId":"x","resumeTargets":{"int_x":{}}}`, 404, "not_found"},
		"too large":          {"agent@acme", `{"graphId":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "too_large"},
		"not what was shown": {"approver@acme", "", 412, "digest_mismatch"},
	} {
		if c.body == "" {
			var list struct{ Items []struct{ ID string } }
			if err := json.Unmarshal([]byte(s.call("approver@acme", "GET", "/api/v1/requests", "").body), &list); err != nil || len(list.Items) != 1 {
				t.Fatal(list, err)
			}
			c.body = `{"stateKey":"demo-1","resumeId":"shown","resumeTargets":{"` + list.Items[0].ID + `":{"action":"approve"}},"shown":{"` + list.Items[0].ID + `":"else"}}`
		}
		got := s.chat(c.token, c.body)
		if got.status != c.status || got.field("code") != c.code || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestChat_NumbersAreKeptExactly(t *testing.T) {
	s := open(t, nil)
	got := s.chat("agent@acme", `{"graphId":"inproc:content-review","input":{"topic":"9007199254740993"},"stateKey":"9007199254740993"}`)
	if got.field("stateKey") != "9007199254740993" {
		t.Errorf("%+v", got)
	}
}

func TestRequests_AreListedAndDecided(t *testing.T) {
	s := open(t, nil)
	for _, key := range []string{"a", "b", "c"} {
		s.chat("agent@acme", strings.Replace(startDemo, "demo-1", key, 1))
	}
	var page struct {
		Items []api.Request
		Next  string
	}
	var keys []string
	for cursor := ""; ; cursor = page.Next {
		page.Next = ""
		got := s.call("approver@acme", "GET", "/api/v1/requests?limit=2&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
			t.Fatal(got, err)
		}
		for _, r := range page.Items {
			keys = append(keys, r.StateKey)
		}
		if page.Next == "" {
			break
		}
	}
	if strings.Join(keys, "") != "abc" {
		t.Errorf("listed are %v", keys)
	}
	r := page.Items[0]
	got := s.call("approver@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"1","answer":{"action":"approve"},"shown":"`+r.Shown+`"}`)
	if got.status != 200 || got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/requests/"+r.ID, ""); got.field("state") != "decided" || !strings.Contains(got.body, `"by":"approver"`) {
		t.Errorf("%+v", got)
	}
	late := s.call("admin@acme", "POST", "/api/v1/requests/"+r.ID+"/decision", `{"resumeId":"2","answer":{"action":"revise"}}`)
	if late.status != 409 || late.field("code") != "already_decided" || !strings.Contains(late.body, `"by":"approver"`) {
		t.Errorf("%+v", late)
	}
}

// An answer to a run without open requests is "not active"; it used to be "superseded".
func TestChat_ResumeOfRunWithoutOpenRequestIsNotActive(t *testing.T) {
	s, release := openHeld(t)
	s.chat("agent@acme", startHeld, "Prefer", "respond-async")
	s.chat("agent@acme", startDemo)
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
	for _, key := range []string{"demo-1", "held/1"} {
		got := s.chat("approver@acme", `{"stateKey":"`+key+`","resumeId":"for `+key+`","resumeValue":{"action":"approve"}}`)
		if got.status != 409 || got.field("code") != "not_active" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	release()
}

func TestLists_InvalidCursorIsRejected(t *testing.T) {
	s := open(t, nil)
	for _, list := range []string{"runs", "requests", "answers"} {
		if got := s.call("admin@acme", "GET", "/api/v1/"+list+"?cursor=x", ""); got.status != 400 || got.field("detail") != "invalid cursor" {
			t.Errorf("%s: %+v", list, got)
		}
	}
}

// Malformed parameters used to be ignored, and the first of two was used: a client with a malformed
// cursor got all answers again.
func TestLists_UnknownParametersAreRejected(t *testing.T) {
	s := open(t, nil)
	for _, query := range []string{
		"/answers?cursor=%zz", "/answers?cursor=a;limit=1", "/requests?state=dec%ided", "/requests?state=decided&state=all",
		"/runs?status=waiting&status=parked", "/runs?limit=1&limit=2",
	} {
		if got := s.call("admin@acme", "GET", "/api/v1"+query, ""); got.status != 400 || got.field("code") != "bad_request" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := s.call("admin@acme", "GET", "/api/v1/runs?status=waiting,parked&limit=1", ""); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// A misspelled status is an error, not an empty list.
func TestRuns_UnknownStatusIsRejected(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	if got := s.call("agent@acme", "GET", "/api/v1/runs?status=waiting,parked", ""); got.status != 200 || !strings.Contains(got.body, "demo-1") {
		t.Errorf("%+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs?status=waitng", ""); got.status != 400 || !strings.Contains(got.body, "superseded") {
		t.Errorf("%+v", got)
	}
}

// A late decision is "expired", whether or not the expiry has been recorded. After it was recorded,
// it used to be "already decided".
func TestDecide_AfterDeadlineReturnsExpired(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.RequestTimeout = time.Millisecond })
	s.chat("agent@acme", startDemo)
	id := s.openRequests("acme")[0].ID
	decide := func(resume string) answer {
		return s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"`+resume+`","answer":{"action":"approve"}}`)
	}
	s.e.StartWorkers()
	eventsIn(s.follow("/api/v1/runs/demo-1/events").Body, nil) // until it ends
	for range 2 {
		if got := decide("1"); got.status != 410 || got.field("code") != "expired" {
			t.Errorf("%+v", got)
		}
	}
	s.chat("agent@acme", strings.Replace(startDemo, "tea", "coffee", 1))
	if got := decide("2"); got.status != 410 || got.field("code") != "expired" {
		t.Errorf("when another run has the state key: %+v", got)
	}
}

func TestEvents_StreamResumesAfterLastEvent(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/runs/demo-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer auditor@acme")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", s.firstEvents("demo-1", 1)[0].id)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`)
	var kinds []string
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok && kind != api.EventStep {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "asked waiting outcome decided completed outcome" && got != "asked waiting decided completed outcome" {
		t.Errorf("it saw %s", got)
	}
}
