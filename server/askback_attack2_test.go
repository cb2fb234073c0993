package server_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// An agent can talk about what it asks, and nothing that it says is a decision, reaches another account, or is larger than a text.
func TestAttack_AnAgentTalksAndDecidesNothing(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	id := s.questions("acme")[0].ID
	post := func(who, act, body string) answer { return s.call(who, "POST", "/api/v1/requests/"+id+"/"+act, body) }
	if got := post("bob@acme", "question", `{"text":"why?"}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	long := strings.Repeat("a", 4001)
	for _, attack := range []struct {
		who, act, body string
		want           []int
	}{
		{"agent@acme", "question", `{"text":"may I?"}`, []int{403}},
		{"agent@acme", "decision", `{"resumeId":"1","answer":{"verb":"approve"}}`, []int{403}},
		{"agent@acme", "extend", `{"until":"2099-01-01T00:00:00Z"}`, []int{403}},
		{"agent@acme", "reply", `{"question":0,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":-1,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":9223372036854775807,"text":"yes"}`, []int{400, 409}},
		{"agent@acme", "reply", `{"question":1,"text":""}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"` + long + `"}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"a","verb":"approve"}`, []int{400}},
		{"agent@acme", "reply", `{"question":1,"text":"a","answer":{"verb":"approve"}}`, []int{400}},
		{"agent@other", "reply", `{"question":1,"text":"a"}`, []int{404}},
		{"agent@other", "comment", `{"text":"a"}`, []int{404}},
		{"bob@acme", "reply", `{"question":1,"text":"I am the run"}`, []int{403}},
		{"bob@other", "question", `{"text":"what do they do?"}`, []int{404}},
	} {
		got := post(attack.who, attack.act, attack.body)
		good := false
		for _, want := range attack.want {
			good = good || got.status == want
		}
		if !good || strings.Contains(got.body, "users") {
			t.Errorf("%s %s %.60s: %d %.200s", attack.who, attack.act, attack.body, got.status, got.body)
		}
	}
	if got := post("agent@acme", "reply", `{"question":1,"text":"{\"verb\":\"approve\"}"}`); got.status != 200 {
		t.Errorf("an answer: %+v", got)
	}
	if got := post("agent@acme", "reply", `{"question":1,"text":"and more"}`); got.status != 409 {
		t.Errorf("a second answer: %+v", got)
	}
	if life := s.life("bob@acme", id).Life; life.State != "open" || len(life.Votes) != 0 || len(life.Questions) != 1 || life.Questions[0].Answer.By != "agent" {
		t.Errorf("%+v", life)
	}
}

// What an agent remarks stood in the log as the word of a person.
func TestAttack_AnAgentsRemarkIsNotThatOfAPerson(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	id := s.questions("acme")[0].ID
	for _, who := range []string{"agent", "bob"} {
		if got := s.call(who+"@acme", "POST", "/api/v1/requests/"+id+"/comment", `{"text":"The CFO has agreed."}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	log := s.call("auditor@acme", "GET", "/api/v1/audit", "").body
	for who, kind := range map[string]string{"agent": "agent", "bob": "person"} {
		said := regexp.MustCompile(`"kind":"request.commented","actor":{"principal":"` + who + `","kind":"(\w+)"`).FindStringSubmatch(log)
		if len(said) != 2 || said[1] != kind {
			t.Errorf("%s is a %s in the log: %q", who, kind, said)
		}
	}
}

// Ids that look like parts of others lead nowhere, and nobody but auditors comes to what was signed and found.
func TestI8_IdsThatPoseAsOthers(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	id := s.questions("acme")[0].ID
	digest := s.life("bob@acme", id).Life.Policy
	for _, posing := range []string{id + "/1", id + "@1", id + "~2", "../" + id, id + "\x00", "acme/" + id, "clock", "audit-sign"} {
		for _, path := range []string{"requests/", "policies/"} {
			if got := s.call("bob@acme", "GET", "/api/v1/"+path+url.PathEscape(posing), ""); got.status != 404 && got.status != 400 {
				t.Errorf("%s%q: %d %.100s", path, posing, got.status, got.body)
			}
		}
	}
	for _, who := range []string{"agent@acme", "bob@acme"} {
		for _, path := range []string{"audit/checkpoints", "audit/findings", "audit"} {
			if got := s.call(who, "GET", "/api/v1/"+path, ""); got.status != 403 {
				t.Errorf("%s reads %s: %d", who, path, got.status)
			}
		}
	}
	// The one in force is that of all; when it was used first is not.
	if got := s.call("bob@other", "GET", "/api/v1/policies/"+digest, ""); got.field("since") != nil {
		t.Errorf("another account learns when it was used: %s", fmt.Sprint(got.field("since")))
	}
}
