package search_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/search"
)

var now = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func request() search.Request {
	return search.Request{
		ID: "int_1", Kind: "approval", Graph: "inproc:refunds", Run: "demo-1", Tool: "billing.Refund", Requester: "refund-bot", Risk: "high",
		Rules: []string{"big-refund"}, Groups: []string{"group:finance", "user:max"}, State: search.Pending, Created: now.Add(-2 * time.Hour),
		Deadline: now.Add(30 * time.Minute), ClaimedBy: "bob", Eligible: true, Data: []byte(`{"args":{"order":"17","note":"caf\u00e9 \"late\""}}`),
	}
}

func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "refund": true, "REFUND cafés": false, "café": true, `"order":"17"`: false, `"order`: false, "17": true, "-17": false, "-18": true,
		"tool:refund": true, "tool:transfer": false, "-tool:transfer": true, "Tool:REFUND": true,
		"kind:approval": true, "kind:approv": false, "kind:appr*": true, "kind:*val": true, "kind:a*r*l": true, "kind:a*x*l": false,
		"run:demo-1": true, "run:demo-*": true, "run:demo": false, "id:int_1": true, "id:int_2": false, "graph:refunds": true,
		"requester:bot": true, "from:bot": true, "group:finance": true, "group:max": true, "group:hr": false, "rule:big": true,
		"risk:high": true, "risk:low": false, "claimed:bob": true, "claimed:ann": false, "by:ann": false,
		"is:open": true, "is:decided": false, "-is:decided": true, "is:mine": true, "is:groups": false, "is:snoozed": false, "is:claimed": true,
		"age:>1h": true, "age:<1h": false, "-age:<1h": true, "older:1h": true, "older:3h": false, "newer:1d": true, "left:<1h": true, "left:>1h": false,
		"tool:refund age:>1h -is:snoozed café": true, "tool:refund age:>3h": false, `graph:"inproc:refunds"`: true, `"inproc:refunds"`: true,
	} {
		q, err := search.Parse(text)
		if err != nil {
			if want || !strings.Contains(err.Error(), "quote") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got := q.Match(request(), now); got != want {
			t.Errorf("%s: matches %t", text, got)
		}
	}
}

func TestMatch_SnoozedRequestIsNotMine(t *testing.T) {
	r := request()
	r.SnoozedTill = now.Add(time.Hour)
	for text, want := range map[string]bool{"is:mine": false, "is:snoozed": true, "is:open": true} {
		if q, err := search.Parse(text); err != nil || q.Match(r, now) != want || q.Match(r, now.Add(2*time.Hour)) == want && text != "is:open" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParse_ErrorsNameWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"tol:refund":                 `unknown operator "tol:"; did you mean "tool:"?`,
		"xyzzyx:red":                 `unknown operator "xyzzyx:"; known: is: tool:`,
		"tool:":                      `"tool:" needs a value, for example tool:refund`,
		"age:old":                    "age:old: write age:>1h or age:<1h",
		"age:>old":                   `age:>old: "old" is not a duration`,
		"left:<-1h":                  "not a duration",
		"older:99999999d":            "not a duration",
		"is:opne":                    `is:opne: did you mean "open"?`,
		"is:blue":                    "is:blue: use one of open, decided",
		"risk:hihg":                  `did you mean "high"?`,
		`tool:"refund`:               "a quote (\") is not closed",
		strings.Repeat("a ", 21):     "21 words; at most 20",
		strings.Repeat("a", 501):     "501 bytes; at most 500",
		"tool:refund tool:x rules:y": `did you mean "rule:"?`,
	} {
		if _, err := search.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The server narrows its reads by these values: what they exclude must not match.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		text, state, kind, run, id string
		named                      bool
		after, before              time.Duration
	}{
		{text: "late"},
		{text: "is:open kind:approval", state: search.Pending, named: true, kind: "approval"},
		{text: "is:done kind:appr*", state: search.Decided, named: true},
		{text: "-is:open -kind:approval", named: true},
		{text: "run:demo-1 id:int_1", run: "demo-1", id: "int_1"},
		{text: "age:>1h older:2h age:<3h -age:>2h30m", before: 2 * time.Hour, after: 150 * time.Minute},
	} {
		q, err := search.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		state, named := q.State()
		if state != c.state || named != c.named || q.Exact("kind") != c.kind || q.Exact("run") != c.run || q.Exact("id") != c.id {
			t.Errorf("%s: state %q (%t), kind %q, run %q, id %q", c.text, state, named, q.Exact("kind"), q.Exact("run"), q.Exact("id"))
		}
		after, before := q.Created(now)
		if (c.after > 0) != !after.IsZero() || c.after > 0 && now.Sub(after) != c.after || (c.before > 0) != !before.IsZero() || c.before > 0 && now.Sub(before) != c.before {
			t.Errorf("%s: after %v, before %v", c.text, after, before)
		}
	}
}

func TestOperators_ExamplesParse(t *testing.T) {
	for _, o := range search.Operators() {
		if _, err := search.Parse(o.Example); err != nil || !strings.HasPrefix(o.Example, o.Name+":") {
			t.Errorf("%s: %v", o.Example, err)
		}
	}
}
