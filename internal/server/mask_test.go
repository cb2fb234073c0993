package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// Sensitive values are masked everywhere until a person reveals them, which the audit log records.
func TestMask_UntilRevealed(t *testing.T) {
	eachStore(t, func(t *testing.T, st store.Store) {
		s := openPaySite(t, st)
		if asked := s.chat("agent@acme", startPay); !strings.Contains(asked.body, card) {
			t.Errorf("the agent that asked: %+v", asked)
		}
		q := s.openRequests("acme")[0]
		one, run := "/api/v1/requests/"+q.ID, "/api/v1/runs/pay-1"
		for _, who := range []string{"fay@acme", "hugo@acme", "admin@acme"} {
			for _, path := range []string{"/api/v1/requests", one, run} {
				got := s.call(who, "GET", path, "")
				if got.status != 200 || strings.Contains(got.body, card) || !strings.Contains(got.body, `"card":"•••"`) || !strings.Contains(got.body, `"masked":["/card"]`) {
					t.Errorf("%s, GET %s: %+v", who, path, got)
				}
			}
		}
		if got := s.call("fay@acme", "POST", one+"/claim", `{}`); got.status != 200 || strings.Contains(got.body, card) {
			t.Errorf("a claim: %+v", got)
		}
		for who, want := range map[string]int{"fay@acme": 200, "admin@acme": 200, "hugo@acme": 403, "zoe@acme": 404, "agent@acme": 403} {
			got := s.call(who, "POST", one+"/reveal", "")
			if got.status != want || strings.Contains(got.body, card) != (want == 200) {
				t.Errorf("%s: %+v", who, got)
			}
			if want == 200 && (got.field("masked") != nil || got.field("shown") != q.Request.Digest()) {
				t.Errorf("%s: the revealed request: %s", who, got.body)
			}
		}
		if got := s.call("fay@acme", "GET", one, ""); strings.Contains(got.body, card) {
			t.Errorf("a reveal is for one response: %+v", got)
		}
		var revealed, refused []string
		for line := range strings.Lines(s.call("admin@acme", "GET", "/api/v1/audit", "").body) {
			var record struct {
				Kind  string
				Actor struct{ Principal string }
				Place struct{ Request string }
				Body  struct {
					Fields []string
					Act    string
				}
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, card) {
				t.Errorf("in the audit log: %s", line)
			}
			switch {
			case record.Kind == "request.revealed" && record.Place.Request == q.ID && slices.Equal(record.Body.Fields, []string{"/card"}):
				revealed = append(revealed, record.Actor.Principal)
			case record.Kind == "request.refused" && record.Body.Act == "reveal":
				refused = append(refused, record.Actor.Principal)
			}
		}
		slices.Sort(revealed)
		slices.Sort(refused)
		if !slices.Equal(revealed, []string{"admin", "fay"}) || !slices.Equal(refused, []string{"agent", "hugo"}) {
			t.Errorf("revealed by %q, refused to %q", revealed, refused)
		}
		if strings.Contains(s.log.String(), card) {
			t.Errorf("in the log: %s", s.log.String())
		}
	})
}

// A mask that is sent back is not an argument; the real value is.
func TestMask_EditWithMaskIsRejected(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	q := s.openRequests("acme")[0]
	decide := func(id, args string) answer {
		return s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/decision", `{"resumeId":"`+id+`","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve","args":`+args+`}}`)
	}
	if got := decide("r1", `{"card":"•••","amount":4}`); got.status != 400 || !strings.Contains(got.body, "reveal the request") {
		t.Errorf("%+v", got)
	}
	if got := decide("r2", `{"card":"`+card+`","amount":4}`); got.status != 200 {
		t.Errorf("%+v", got)
	}
	var r api.Request
	got := s.call("fay@acme", "GET", "/api/v1/requests/"+q.ID, "")
	if err := json.Unmarshal([]byte(got.body), &r); err != nil || strings.Contains(got.body, card) || r.Activity.Edit == nil || !strings.Contains(string(r.Decision.Answer), "•••") {
		t.Errorf("the decided request: %+v, %v", got, err)
	}
	if got := s.call("admin@acme", "GET", "/api/v1/answers", ""); strings.Contains(got.body, card) || !strings.Contains(got.body, "•••") {
		t.Errorf("the answers: %+v", got)
	}
	if got := s.call("agent@acme", "GET", "/api/v1/answers", ""); !strings.Contains(got.body, card) {
		t.Errorf("the answers for the agent: %+v", got)
	}
}

// A grant shows its constraints without sensitive values, also where another argument repeats one,
// and only to the audience of its request. It may allow only a part of the value.
func TestMask_Grants(t *testing.T) {
	for name, terms := range map[string]string{
		"the same arguments": `{"seconds":60,"uses":1}`,
		"relaxed":            `{"seconds":60,"uses":1,"relax":{"/card":{"op":"prefix","value":"4111-"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openPaySite(t, memory.NewStore(nil))
			s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"pay-2","kind":"approval","data":{"action":"pay","args":{"card":"`+card+`","amount":5,"note":"pay to `+card+`"},"argsSchema":{"type":"object"}}}`)
			q := s.openRequests("acme")[0]
			s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve"}}`)
			if got := s.call("fay@acme", "POST", "/api/v1/requests/"+q.ID+"/grant", terms); got.status != 200 || strings.Contains(got.body, card) || !strings.Contains(got.body, "pay to •••") {
				t.Errorf("%+v", got)
			}
			for who, sees := range map[string]bool{"fay@acme": true, "zoe@acme": false, "admin@acme": true} {
				if got := s.call(who, "GET", "/api/v1/grants", ""); strings.Contains(got.body, q.ID) != sees || strings.Contains(got.body, card) || strings.Contains(got.body, "4111-") {
					t.Errorf("%s: %+v", who, got)
				}
			}
		})
	}
}

// A condition, or a relaxed argument, that tests a masked value tells something about it. So it
// counts as a reveal. One that does not use the value, and one of a person who may not decide, does
// not.
func TestMask_ProbesAreReveals(t *testing.T) {
	for name, c := range map[string]struct {
		who, onlyIf, relax string
		revealed           bool
	}{
		"false":            {who: "fay", onlyIf: `args.card < \"4\"`, revealed: true},
		"fails":            {who: "fay", onlyIf: `args.card < \"4\" ? false : [1][5] == 1`, revealed: true},
		"holds":            {who: "fay", onlyIf: `args.card.startsWith(\"4\")`, revealed: true},
		"by index":         {who: "fay", onlyIf: `args[\"ca\" + \"rd\"] == \"\"`, revealed: true},
		"all arguments":    {who: "fay", onlyIf: `size(args) == 7`, revealed: true},
		"data":             {who: "fay", onlyIf: `has(data.x)`, revealed: true},
		"another argument": {who: "fay", onlyIf: `args.amount > 7`},
		"no expression":    {who: "fay", onlyIf: `args.card <`},
		"stranger":         {who: "hugo", onlyIf: `args.card < \"4\"`},
		"relaxed":          {who: "fay", relax: "/card", revealed: true},
		"other relaxed":    {who: "fay", relax: "/amount"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openPaySite(t, memory.NewStore(nil))
			s.chat("agent@acme", startPay)
			q := s.openRequests("acme")[0]
			one := "/api/v1/requests/" + q.ID
			if c.onlyIf != "" {
				s.call(c.who+"@acme", "POST", one+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve","conditions":{"onlyIf":"`+c.onlyIf+`"}}}`)
			} else {
				s.call(c.who+"@acme", "POST", one+"/decision", `{"resumeId":"r1","shown":"`+q.Request.Digest()+`","answer":{"verb":"approve"}}`)
				s.call(c.who+"@acme", "POST", one+"/grant", `{"seconds":60,"uses":1,"relax":{"`+c.relax+`":{"op":"prefix","value":"9"}}}`)
			}
			var by []string
			for line := range strings.Lines(s.call("admin@acme", "GET", "/api/v1/audit", "").body) {
				var record struct {
					Kind  string
					Actor struct{ Principal string }
					Body  struct{ Fields []string }
				}
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Fatal(err)
				}
				if record.Kind == "request.revealed" {
					by = append(by, record.Actor.Principal+" "+strings.Join(record.Body.Fields, " "))
				}
			}
			want := []string{c.who + " /card"}
			if !c.revealed {
				want = nil
			}
			if !slices.Equal(by, want) {
				t.Errorf("revealed by %q, want %q", by, want)
			}
		})
	}
}
