package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/policy/replay"
)

// asJSON is a text as a string of JSON.
func asJSON(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What the rules said is there to be read by those who may, and what others would have said can be asked.
func TestPolicies_ThePastByOtherRules(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	ask := func(who, rules string) answer {
		return s.call(who, "POST", "/api/v1/policies/replay", `{"policy":`+asJSON(t, rules)+`,"seconds":3600}`)
	}
	got := ask("auditor@acme", "default: allow\n")
	var past replay.Past
	if err := json.Unmarshal([]byte(got.body), &past); err != nil || got.status != 200 || past.Rulings != 1 || past.Looser != 1 || past.Examples[0].Request != s.questions("acme")[0].ID {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(got.body, "users") {
		t.Errorf("I7: it tells an argument: %s", got.body)
	}
	if got := ask("auditor@acme", dropRules); !strings.Contains(got.body, `"unchanged":1`) {
		t.Errorf("the same rules: %+v", got)
	}
	if got := ask("auditor@other", "default: allow\n"); !strings.Contains(got.body, `"rulings":0`) {
		t.Errorf("I8: another account: %+v", got)
	}
	if got := ask("auditor@acme", "default: maybe\n"); got.status != 400 || !strings.Contains(got.body, "cannot be") {
		t.Errorf("no rules: %+v", got)
	}
	for who, want := range map[string]int{"bob@acme": 403, "agent@acme": 403, "": 401} {
		if got := ask(who, "default: allow\n"); got.status != want {
			t.Errorf("%s: %+v", who, got)
		}
	}
	for _, body := range []string{`{}`, `{"policy":"","seconds":1}`, `{"policy":"default: allow","seconds":0}`, `{"policy":` + asJSON(t, strings.Repeat("#", 1<<19+1)) + `,"seconds":1}`} {
		if got := s.call("auditor@acme", "POST", "/api/v1/policies/replay", body); got.status != 400 {
			t.Errorf("%.40s: %d %.200s", body, got.status, got.body)
		}
	}
}

// A digest in a request leads to the text, byte for byte.
func TestPolicies_TheTextBehindADigest(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	digest := s.life("bob@acme", s.questions("acme")[0].ID).Life.Policy
	for _, who := range []string{"bob@acme", "auditor@acme"} {
		if got := s.call(who, "GET", "/api/v1/policies/"+digest, ""); got.status != 200 || got.field("text") != dropRules || got.field("since") == nil || got.field("digest") != digest {
			t.Errorf("%s: %+v", who, got)
		}
	}
	for _, unknown := range []string{"sha256:00", "x", strings.Repeat("x", 500)} {
		if got := s.call("auditor@acme", "GET", "/api/v1/policies/"+unknown, ""); got.status != 404 || got.field("code") != "not_found" {
			t.Errorf("%.20s: %+v", unknown, got)
		}
	}
	if got := s.call("agent@acme", "GET", "/api/v1/policies/"+digest, ""); got.status != 403 {
		t.Errorf("an agent: %+v", got)
	}
}
