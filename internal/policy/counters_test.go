package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

const spending = `
default: deny
rules:
- id: transfers
  when: req.tool == "transfer"
  then: allow
- id: daily
  when: req.tool == "transfer"
  limit: {amount: args.cents, max: 100000, window: 24h, by: [requester]}
  then: ask
  ask: {groups: [{from: ["group:finance"]}], deadline: 4h}
- id: monthly
  when: req.tool == "transfer"
  limit: {amount: args.cents, max: 1_000_000, window: 30d}
  then: deny
- id: rate
  when: req.tool == "mail"
  limit: {max: 20, window: 1h, by: [agent, tool]}
  then: deny
- id: a-few-mails
  when: req.tool == "mail"
  limit: {max: 5, window: 1h, by: [requester]}
  then: allow
`

// The numbers are the earlier charges, to the counters of the rules in order.
func TestLimit(t *testing.T) {
	set := load(t, spending)
	for _, c := range []struct {
		name, tool, args string
		past             []int64 // daily and monthly, or rate and a-few-mails; -1 means missing
		want             policy.Verdict
		rules            string
	}{
		{"first", "transfer", `{"cents":100}`, []int64{0, 0}, policy.Allow, "transfers"},
		{"just within", "transfer", `{"cents":100}`, []int64{99_900, 99_900}, policy.Allow, "transfers"},
		{"a cent beyond", "transfer", `{"cents":101}`, []int64{99_900, 99_900}, policy.Ask, "daily"},
		{"one that is beyond alone", "transfer", `{"cents":100001}`, []int64{0, 0}, policy.Ask, "daily"},
		{"beyond the month", "transfer", `{"cents":100}`, []int64{0, 999_901}, policy.Deny, "monthly"},
		{"the month to the cent", "transfer", `{"cents":100}`, []int64{0, 999_900}, policy.Allow, "transfers"},
		{"whole, written as a fraction", "transfer", `{"cents":100.0}`, []int64{0, 0}, policy.Allow, "transfers"},
		{"a fraction of a cent", "transfer", `{"cents":0.5}`, []int64{0, 0}, policy.Deny, "monthly"},
		{"as text", "transfer", `{"cents":"100"}`, []int64{0, 0}, policy.Deny, "monthly"},
		{"missing", "transfer", `{}`, []int64{0, 0}, policy.Deny, "monthly"},
		{"negative", "transfer", `{"cents":-100}`, []int64{0, 0}, policy.Deny, "monthly"},
		{"so large that the sum turns over", "transfer", `{"cents":9223372036854775807}`, []int64{1, 1}, policy.Deny, "monthly"},
		{"beyond int64", "transfer", `{"cents":9223372036854775808}`, []int64{0, 0}, policy.Deny, "monthly"},
		{"no number for the month", "transfer", `{"cents":1}`, []int64{0, -1}, policy.Deny, "monthly"},
		{"no number for the day", "transfer", `{"cents":1}`, []int64{-1, 0}, policy.Ask, "daily"},
		{"first mail", "mail", `{}`, []int64{0, 0}, policy.Allow, "a-few-mails"},
		{"fifth mail", "mail", `{}`, []int64{4, 4}, policy.Allow, "a-few-mails"},
		{"sixth mail is not allowed any more", "mail", `{}`, []int64{5, 5}, policy.Deny, "default"},
		{"too many of one agent", "mail", `{}`, []int64{20, 0}, policy.Deny, "rate"},
		{"no number for the allow", "mail", `{}`, []int64{0, -1}, policy.Deny, "default"},
		{"no number for the deny", "mail", `{}`, []int64{-1, 0}, policy.Deny, "rate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(c.tool, c.args)
			in.History = make(map[string]int64)
			demands := set.CounterQueries(in)
			if len(demands) != len(c.past) {
				t.Fatalf("demands: %+v", demands)
			}
			for i, d := range demands {
				if c.past[i] >= 0 {
					in.History[d.Key()] = c.past[i]
				}
			}
			d := decide(t, set, in)
			if got := strings.Join(d.Rules, ","); d.Verdict != c.want || got != c.rules {
				t.Errorf("%s by %s, want %s by %s: %+v", d.Verdict, got, c.want, c.rules, d.Trace)
			}
		})
	}
}

func TestLimit_NegativeCounterIsError(t *testing.T) {
	set := load(t, spending)
	in := withCounters(set, input("transfer", `{"cents":1}`), -1_000_000)
	d := decide(t, set, in)
	if d.Verdict != policy.Deny {
		t.Errorf("%s: %+v", d.Verdict, d.Trace)
	}
	for _, trace := range d.Trace {
		if trace.Rule != "transfers" && trace.Outcome != policy.RuleFailed {
			t.Errorf("it was counted with: %+v", trace)
		}
	}
}

// Queries and charges use the same counters, so that the store needs no knowledge of the rules.
func TestLimit_ChargesMatchCounterQueries(t *testing.T) {
	set := load(t, `
default: allow
rules:
- {id: often, when: 'history.count("requester,tool", "1h") > 3 || history.count("tool,requester", "24h") > 9', then: deny}
- {id: spend, when: 'true', then: deny, limit: {amount: req.cost, max: 10, window: 2h, by: [graph]}}
- {id: other, when: 'req.tool == "other"', then: deny, limit: {max: 1, window: 1h}}
`)
	counters := map[string][]int64{} // the charges; the clock does not move
	charge := func(tool string, cost int64) policy.Decision {
		in := input(tool, `{}`, withCost(cost))
		in.History = make(map[string]int64)
		for _, d := range set.CounterQueries(in) {
			var sum int64
			for _, n := range counters[d.Counter] {
				sum += n
			}
			in.History[d.Key()] = sum
		}
		d := decide(t, set, in)
		if d.Verdict == policy.Allow {
			for _, c := range d.Charges {
				counters[c.Counter] = append(counters[c.Counter], c.Amount)
			}
		}
		return d
	}
	var got []string
	for _, c := range []struct {
		tool string
		cost int64
	}{{"t", 4}, {"t", 5}, {"u", 2}, {"t", 1}, {"t", 0}, {"t", 0}, {"u", 0}} {
		d := charge(c.tool, c.cost)
		got = append(got, c.tool+" "+string(d.Verdict)+" "+strings.Join(d.Rules, ","))
	}
	want := []string{"t allow default", "t allow default", "u deny spend", "t allow default", "t allow default", "t deny often", "u allow default"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// No account and no unusual name can reach the counter of another account.
func TestI8_CountersArePerAccount(t *testing.T) {
	set := load(t, "default: allow\nrules:\n- {id: l, when: 'true', then: deny, limit: {max: 1, window: 1h, by: [requester]}}\n")
	key := func(account, requester string) string {
		return set.CounterQueries(policy.Input{Account: account, Requester: requester, Tool: "t"})[0].Key()
	}
	if key("a", "x") == key("b", "x") {
		t.Error("two accounts share a counter")
	}
	if key(`a" requester="b`, "c") == key("a", `b" requester="c`) {
		t.Error("a name poses as another")
	}
	d := set.CounterQueries(policy.Input{Account: "a", Requester: "x", Tool: "t"})[0]
	if d.Scope["account"] != "a" || d.Scope["requester"] != "x" || d.Limit != "l" || d.Window != policy.Duration(time.Hour) {
		t.Errorf("%+v", d)
	}
}

func TestCounterQueries_OnlyForTheTool(t *testing.T) {
	set := load(t, spending)
	if demands := set.CounterQueries(input("read", `{}`)); len(demands) != 0 {
		t.Errorf("%+v", demands)
	}
	if demands := set.CounterQueries(input("mail", `{}`)); len(demands) != 2 {
		t.Errorf("%+v", demands)
	}
}
