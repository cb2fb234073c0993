package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
)

// A frontend speaks for end users: the conversation, its questions and its audit records are those
// of the user, and name the key too.
func TestFrontend_SpeaksForAnEndUser(t *testing.T) {
	s := openConversations(t, nil, nil)
	if got := s.call("frontend@acme", "POST", conversations, `{"id":"c1","endUser":"user"}`); got.status != http.StatusCreated {
		t.Fatalf("%+v", got)
	}
	r := s.say("frontend@acme", "c1", `{"id":"m1","text":"write to Anna","endUser":"user"}`)
	if r.User != "user" || r.By != "frontend" || r.Lines[0].Actor != "user" || r.Lines[0].By != "frontend" || r.Questions[0].Status != dialog.Asked {
		t.Fatalf("%+v", r)
	}
	// The user may answer, too.
	if r = s.say("user@acme", "c1", `{"id":"m2","question":"q1","choice":"anna-m"}`); lastLine(r) != "Done: anna-m" || r.Lines[2].By != "" {
		t.Errorf("%+v", r.Lines)
	}
	s.say("frontend@acme", "c1", `{"id":"m3","text":"write to Anna","endUser":"user"}`)
	s.say("frontend@acme", "c1", `{"id":"m4","question":"q2","choice":"anna-s","endUser":"user"}`)
	got := make(map[string][]string)
	for line := range strings.Lines(s.call("auditor@acme", "GET", "/api/v1/audit", "").body) {
		var record struct {
			Kind  string
			Actor struct{ Principal, Via string }
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		got[record.Kind] = append(got[record.Kind], record.Actor.Principal+", "+record.Actor.Via)
	}
	const both = "user, conversation by=frontend http"
	if !slices.Equal(got["run.started"], []string{both, both}) || !slices.Equal(got["request.decided"], []string{"user, conversation", both}) {
		t.Errorf("the audit log has %q", got)
	}
}

func TestFrontend_OthersMayNotNameAnEndUser(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("frontend@acme", "POST", conversations, `{"id":"c1","endUser":"customer"}`)
	s.call("user@acme", "POST", conversations, `{"id":"own"}`)
	const message = `{"text":"hello","endUser":"customer"}`
	for _, who := range []string{"user@acme", "admin@acme"} {
		for _, call := range [][3]string{
			{"POST", conversations, `{"endUser":"customer"}`}, {"POST", conversations + "/c1/messages", message}, {"GET", conversations + "?endUser=customer", ""}, {"GET", conversations + "/c1?endUser=customer", ""},
		} {
			if got := s.call(who, call[0], call[1], call[2]); got.status != http.StatusForbidden || !strings.Contains(got.body, "role frontend") {
				t.Errorf("%s, %s %s: %+v", who, call[0], call[1], got)
			}
		}
	}
	// A frontend must name the user, and sees only the conversations that it has begun for them.
	for path, want := range map[string]int{
		"/c1": http.StatusBadRequest, "/c1?endUser=other": http.StatusNotFound, "/c1?endUser=customer": http.StatusOK,
		"/own?endUser=user": http.StatusNotFound, "?endUser=customer": http.StatusOK, "": http.StatusBadRequest,
	} {
		if got := s.call("frontend@acme", "GET", conversations+path, ""); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.call("frontend@acme", "POST", conversations, `{"endUser":"bad\u202ename"}`); got.status != http.StatusBadRequest || !strings.Contains(got.body, "body.endUser") {
		t.Errorf("a name with invisible characters: %+v", got)
	}
	if got := s.call("frontend@acme", "POST", conversations, `{"id":"own","endUser":"user"}`); got.status != http.StatusBadRequest || !strings.Contains(got.body, "in use") {
		t.Errorf("the conversation of the user: %+v", got)
	}
	var page api.Page[api.Conversation]
	if got := s.call("frontend@acme", "GET", conversations+"?endUser=user", ""); json.Unmarshal([]byte(got.body), &page) != nil || len(page.Items) != 0 {
		t.Errorf("conversations of the user: %+v", got)
	}
	for _, path := range []string{"/api/v1/requests", "/api/v1/runs", "/api/v1/audit/records"} {
		if got := s.call("frontend@acme", "GET", path, ""); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}
