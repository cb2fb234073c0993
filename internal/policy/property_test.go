package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// conditions cover hits, misses and errors.
var conditions = []string{
	`true`, `false`, `req.tool == "t"`, `req.tool == "u"`, `args.a > 1`, `args.a == 1`, `args.b.startsWith("x")`, `has(args.a)`, `args.l[0] == 1`,
	`args[?"a"].orValue(0) > 5`, `args.a == 1 && req.tool == "t"`, `args.l.all(x, x > 0)`, `size(args) > 2`, `int(args.b) == 1`, `args == {"a": 1}`,
	`history.count("tool", "1h") > 2`, `local.hour < 12`,
}

var demands = []string{
	`groups: [{from: ["group:x"]}], deadline: 24h`,
	`groups: [{from: ["group:x"], widen: ["group:m", "group:n"]}], deadline: 24h, verbs: [approve, reject, claim, ask]`,
	`groups: [{from: ["group:x"], widen: ["group:n"]}, {from: ["group:y"], widen: ["group:x"]}], deadline: 24h, verbs: [abandon, reject, approve, ask]`,
	`groups: [{from: ["group:x"], count: 2}, {from: ["group:y"]}], deadline: 1h, min_auth: sso, editable: [/a, /b]`,
	`groups: [{from: [anyone], count: 2}], deadline: 2h, separation_of_duties: [requester], remember_max: 8h, editable: [""]`,
	`groups: [{from: [anyone]}], deadline: 30m, on_timeout: escalate, deny_count: 3, sensitive: [/a], visible_to: [requester], edit_reasons: [typo], reject_reasons: [risk], confirm: [/a], on_escalate: return, editable: [/a/b]`,
	`groups: [{from: ["group:x"], stage: 1}, {from: ["group:y"]}], deadline: 3h, on_timeout: reject, sensitive: [/b], visible_to: [requester, "group:x"], edit_reasons: [scope], confirm: [/b], undo: 1m`,
	`groups: [{from: ["group:x", "user:ann"]}], deadline: 3h, min_auth: hardware, remember_max: 1h`,
}

func randomRule(r *rand.Rand, id string, then string) string {
	when := conditions[r.IntN(len(conditions))]
	if r.IntN(3) == 0 {
		when = "(" + when + ")" + []string{" && ", " || "}[r.IntN(2)] + "(" + conditions[r.IntN(len(conditions))] + ")"
	}
	rule := fmt.Sprintf("- id: %s\n  when: %s\n  then: %s\n", id, quoted(when), then)
	if then == "ask" {
		rule += "  ask: {" + demands[r.IntN(len(demands))] + "}\n"
	}
	if r.IntN(4) == 0 {
		rule += fmt.Sprintf("  limit: {max: %d, window: 1h, amount: %s}\n", r.IntN(5), quoted([]string{"1", "args.a", "req.cost"}[r.IntN(3)]))
	}
	return rule
}

var arguments = []string{
	`{}`, `{"a":1}`, `{"a":2,"b":"xy"}`, `{"a":"1","b":"1","l":[1]}`, `{"a":null,"b":7,"l":[]}`, `[1]`, `null`, `"x"`, `{"a":1e400,"l":[1,-1]}`,
	`{"a":18446744073709551616}`, `{"a":-5,"b":"x","l":[1,2,3],"c":{}}`, `{"a":9223372036854775807}`,
}

// Adding a deny rule never weakens a decision. Adding an ask rule does not either if a rule has
// decided before. Only a default is replaced by it.
func TestProperty_AddingAskOrDenyNeverWeakens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	asked := 0
	for round := range 200 {
		fallback := []string{"allow", "ask", "deny"}[r.IntN(3)]
		doc := "default: " + fallback + "\ndefaults: {ask: {" + demands[r.IntN(len(demands))] + "}}\nrules:\n"
		for i := range 1 + r.IntN(5) {
			doc += randomRule(r, fmt.Sprintf("r%d", i), []string{"allow", "ask", "deny"}[r.IntN(3)])
		}
		then := []string{"ask", "deny"}[r.IntN(2)]
		more := doc + randomRule(r, "added", then)
		before, after := load(t, doc), load(t, more)
		for _, args := range arguments {
			in := input([]string{"t", "u"}[r.IntN(2)], args)
			if r.IntN(4) > 0 {
				in = withCounters(after, in, int64(r.IntN(5)))
			}
			was, is := decide(t, before, in), decide(t, after, in)
			if then == "ask" && was.Rules[0] == policy.DefaultRule && was.Verdict != policy.Allow {
				continue
			}
			if was.Verdict == policy.Ask && is.Verdict == policy.Ask && !slices.Equal(was.Rules, is.Rules) {
				asked++
			}
			if weaker := policy.Weakenings(was, is); len(weaker) > 0 {
				t.Fatalf("round %d, %s: %v\n%s", round, args, weaker, more)
			}
		}
	}
	if asked < 30 {
		t.Errorf("two asks were merged only %d times: this test shows little", asked)
	}
}

// A rule that fails never allows: with any arguments, the verdict is at least as strict as with the
// other rules alone.
func TestProperty_RuleErrorsNeverAllow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	failed := 0
	for range 120 {
		doc := "default: allow\nrules:\n"
		for i := range 1 + r.IntN(5) {
			doc += randomRule(r, fmt.Sprintf("r%d", i), []string{"allow", "ask", "deny"}[r.IntN(3)])
		}
		set := load(t, doc)
		for _, args := range arguments {
			d := decide(t, set, withCounters(set, input("t", args), 1))
			strictest := policy.Decision{Verdict: policy.Allow}
			for _, trace := range d.Trace {
				if trace.Outcome == policy.RuleFailed {
					failed++
				}
				counts := trace.Outcome == policy.RuleHit || trace.Outcome == policy.RuleFailed && trace.Then != policy.Allow
				if one := (policy.Decision{Verdict: trace.Then}); counts && len(policy.Weakenings(one, strictest)) > 0 {
					strictest = one
				}
			}
			if d.Verdict != strictest.Verdict {
				t.Fatalf("%s, and the rules say %s: %+v\n%s", d.Verdict, strictest.Verdict, d.Trace, doc)
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d rules failed: this test shows little", failed)
	}
}

// No arguments cause a panic. Invalid JSON is an error, and a rule that fails never allows.
func FuzzDecide(f *testing.F) {
	for _, args := range arguments {
		f.Add("t", args)
	}
	f.Add("db.execute", `{"sql":"delete from users"}`)
	f.Add("transfer", `{"cents":1e3}`)
	base, strict := load(f, operations), load(f, operations+`
- {id: extra-deny, when: 'args.a.b.c == 1', then: deny}
- {id: extra-ask, when: 'args.a > 5', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h}}
`)
	money := load(f, spending)
	f.Fuzz(func(t *testing.T, tool, args string) {
		in := input(tool, args)
		d, err := base.Decide(in)
		if strictjson.Check([]byte(args)) != nil && args != "" {
			if !errors.Is(err, policy.ErrInput) {
				t.Fatalf("decided on %q: %v", args, d.Verdict)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		more, err := strict.Decide(in)
		if err != nil {
			t.Fatal(err)
		}
		if d.Rules[0] != policy.DefaultRule && len(policy.Weakenings(d, more)) > 0 {
			t.Fatalf("%v", policy.Weakenings(d, more))
		}
		paid, err := money.Decide(withCounters(money, in, 0))
		if err != nil {
			t.Fatal(err)
		}
		if paid.Verdict == policy.Allow && tool == "transfer" {
			for _, c := range paid.Charges {
				if c.Amount < 0 || c.Amount > 1_000_000 {
					t.Fatalf("allowed with a charge of %d", c.Amount)
				}
			}
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(operations)
	f.Add(spending)
	f.Add(refunds)
	f.Add("default: &a [*a]")
	f.Add("default: allow\nrules:\n- {id: x, when: '" + strings.Repeat("(", 300) + "', then: deny}\n")
	f.Fuzz(func(t *testing.T, doc string) {
		set, err := policy.Load("p", []byte(doc), policy.Options{})
		if (set == nil) == (err == nil) {
			t.Fatal(set, err)
		}
		if set != nil {
			_ = set.Lint(policy.LintContext{})
			_, _ = set.Decide(input("t", `{"a":1}`))
		}
	})
}
