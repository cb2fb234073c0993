package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy/replay"
)

// asJSON encodes a text as a JSON string.
func asJSON(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// repeatRules returns as many rules as fit into a number of bytes.
func repeatRules(bytes int, rule func(n int) string) string {
	var text strings.Builder
	text.WriteString("default: deny\nrules:\n")
	for n := 0; text.Len() < bytes; n++ {
		text.WriteString("- {" + rule(n) + "}\n")
	}
	return text.String()
}

func replayOf(t *testing.T, rules string) string {
	t.Helper()
	return `{"policy":` + asJSON(t, rules) + `,"seconds":3600}`
}

// Past rulings can be read with the required role, and replayed with other rules.
func TestPolicies_Replay(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	ask := func(who, rules string) answer {
		return s.call(who, "POST", "/api/v1/policies/replay", `{"policy":`+asJSON(t, rules)+`,"seconds":3600}`)
	}
	got := ask("auditor@acme", "default: allow\n")
	var past replay.HistoryReport
	if err := json.Unmarshal([]byte(got.body), &past); err != nil || got.status != 200 || past.Rulings != 1 || past.Looser != 1 || past.Examples[0].Request != s.openRequests("acme")[0].ID {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(got.body, "users") {
		t.Errorf("I7: it contains an argument: %s", got.body)
	}
	if got := ask("auditor@acme", dropRules); !strings.Contains(got.body, `"unchanged":1`) {
		t.Errorf("the same rules: %+v", got)
	}
	if got := ask("auditor@other", "default: allow\n"); !strings.Contains(got.body, `"rulings":0`) {
		t.Errorf("I8: another account: %+v", got)
	}
	if got := ask("auditor@acme", "default: maybe\n"); got.status != 400 || !strings.Contains(got.body, "is not one of") {
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

// A digest in a request resolves to the policy text, byte for byte.
func TestPolicies_TextByDigest(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	digest := s.activity("bob@acme", s.openRequests("acme")[0].ID).Activity.Policy
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

// An invalid policy gets a readable response, not ten thousand mistakes.
func TestPolicies_MistakesAreTruncated(t *testing.T) {
	s := openDeskSite(t)
	for name, rules := range map[string]string{
		"nothing": repeatRules(100_000, func(n int) string { return fmt.Sprint("id: r", n) }),
		"word":    repeatRules(10, func(int) string { return "id: r, when: 'true', then: " + strings.Repeat("d", 400_000) }),
		"keys":    repeatRules(10, func(int) string { return strings.Repeat("k: 1, ", 50_000) + "id: r" }),
	} {
		// one account each: on a slow machine it would be paused
		got := s.call("auditor@"+name, "POST", "/api/v1/policies/replay", replayOf(t, rules))
		if got.status != 400 || len(got.body) > 32<<10 || len(got.body) < 100 {
			t.Errorf("%s: %d with %d bytes", name, got.status, len(got.body))
		}
	}
}

// Rules with thousands of history conditions would take days to replay.
func TestPolicies_ExpensiveReplayIsRejected(t *testing.T) {
	s := openDeskSite(t)
	for name, rules := range map[string]string{
		"counts": repeatRules(100_000, func(n int) string {
			return fmt.Sprintf(`id: r%d, when: 'history.count("tool","%ds")>1', then: deny`, n, n+1)
		}),
		"limits": repeatRules(100_000, func(n int) string {
			return fmt.Sprintf("id: r%d, when: 'true', then: deny, limit: {max: 1, window: 1h}", n)
		}),
	} {
		s.chat("agent@"+name, startDrop) // one account each: on a slow machine it would be paused
		if got := s.call("auditor@"+name, "POST", "/api/v1/policies/replay", replayOf(t, rules)); got.status != 400 || !strings.Contains(got.body, "rules") {
			t.Errorf("%s: %d %.200s", name, got.status, got.body)
		}
	}
}
