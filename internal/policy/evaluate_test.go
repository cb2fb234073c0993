package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

const operations = `
version: "2026-11-14.3"
default: ask
time_zone: Europe/Zurich
defaults:
  ask: {groups: [{from: ["group:oncall"]}], deadline: 24h, min_auth: sso}
rules:
- id: reads-are-free
  when: req.effects.size() == 0
  then: allow
- id: bulk-delete
  when: req.tool == "db.execute" && args.sql.lowerAscii().matches("^\\s*(delete|truncate|drop|alter)\\b") && req.environment == "prod"
  then: ask
  reason: destructive SQL in production
  ask:
    groups: [{from: ["group:db-oncall"]}, {from: ["group:owners:${req.graph}"]}]
    separation_of_duties: [requester, author]
    editable: ["/sql", "/limit"]
- id: expensive
  when: req.cost > 5000 || args[?"iterations"].orValue(0) > 100
  then: ask
  ask: {groups: [{from: ["group:finops"]}], deadline: 4h, min_auth: slack_linked, remember_max: 8h, editable: ["/limit", "/iterations"]}
- id: residency
  when: req.tool == "data.export" && args.region != "eu-central-1" && !(req.account in ["acme-us"])
  then: deny
  reason: data residency
- id: small-transfers
  when: req.tool == "bank.transfer" && args.amount_minor <= 10000
  then: allow
- id: quiet-hours
  when: local.hour < 7 || local.weekday in [0, 6]
  then: ask
  mode: dry_run
`

// A policy of typical rules: the strictest matching rule wins, the default applies if none matches,
// and a rule that fails never allows.
func TestDecide_Operations(t *testing.T) {
	set := load(t, operations)
	reading := func(in *policy.Input) { in.Effects = nil }
	of := func(account string) func(*policy.Input) { return func(in *policy.Input) { in.Account = account } }
	for _, c := range []struct {
		name  string
		in    policy.Input
		want  policy.Verdict
		rules string
	}{
		{"nothing speaks", input("mail.send", `{}`), policy.Ask, "default"},
		{"reading", input("mail.read", `{}`, reading), policy.Allow, "reads-are-free"},
		{"reading costs", input("mail.read", `{}`, reading, withCost(5001)), policy.Ask, "expensive"},
		{"reading abroad", input("data.export", `{"region":"us"}`, reading), policy.Deny, "residency"},
		{"delete", input("db.execute", `{"sql":"DELETE FROM users"}`), policy.Ask, "bulk-delete"},
		{"delete after spaces", input("db.execute", `{"sql":" \n\tdelete from users"}`), policy.Ask, "bulk-delete"},
		{"drop", input("db.execute", `{"sql":"drop table users"}`), policy.Ask, "bulk-delete"},
		{"a word that begins so", input("db.execute", `{"sql":"dropped"}`), policy.Ask, "default"},
		{"select", input("db.execute", `{"sql":"select 1"}`), policy.Ask, "default"},
		{"delete in dev", input("db.execute", `{"sql":"delete from users"}`, inEnvironment("dev")), policy.Ask, "default"},
		{"missing sql in dev is not an error", input("db.execute", `{}`, inEnvironment("dev")), policy.Ask, "default"},
		{"no sql in prod closes", input("db.execute", `{}`), policy.Ask, "bulk-delete"},
		{"sql is null", input("db.execute", `{"sql":null}`), policy.Ask, "bulk-delete"},
		{"sql is a number", input("db.execute", `{"sql":5}`), policy.Ask, "bulk-delete"},
		{"sql is a list", input("db.execute", `{"sql":["delete"]}`), policy.Ask, "bulk-delete"},
		{"args are a list", input("db.execute", `["delete"]`), policy.Ask, "bulk-delete,expensive"},
		{"args are a text", input("db.execute", `"delete"`), policy.Ask, "bulk-delete"},
		{"args are null", input("db.execute", `null`), policy.Ask, "bulk-delete"},
		{"no args at all", input("bank.transfer", ``), policy.Ask, "default"},
		{"another case of the key", input("db.execute", `{"SQL":"select 1"}`), policy.Ask, "bulk-delete"},
		{"abroad", input("data.export", `{"region":"us-east-1"}`), policy.Deny, "residency"},
		{"at home", input("data.export", `{"region":"eu-central-1"}`), policy.Ask, "default"},
		{"region missing closes", input("data.export", `{}`), policy.Deny, "residency"},
		{"region null closes", input("data.export", `{"region":null}`), policy.Deny, "residency"},
		{"abroad, for those at home there", input("data.export", `{"region":"us"}`, of("acme-us")), policy.Ask, "default"},
		{"region missing, exempt anyway", input("data.export", `{}`, of("acme-us")), policy.Ask, "default"},
		{"small transfer", input("bank.transfer", `{"amount_minor":10000}`), policy.Allow, "small-transfers"},
		{"a cent more", input("bank.transfer", `{"amount_minor":10001}`), policy.Ask, "default"},
		{"half a cent more", input("bank.transfer", `{"amount_minor":10000.5}`), policy.Ask, "default"},
		{"written as a fraction", input("bank.transfer", `{"amount_minor":10000.0}`), policy.Allow, "small-transfers"},
		{"written with an exponent", input("bank.transfer", `{"amount_minor":1e4}`), policy.Allow, "small-transfers"},
		{"amount as text opens nothing", input("bank.transfer", `{"amount_minor":"5"}`), policy.Ask, "default"},
		{"amount as bool opens nothing", input("bank.transfer", `{"amount_minor":true}`), policy.Ask, "default"},
		{"amount missing opens nothing", input("bank.transfer", `{}`), policy.Ask, "default"},
		{"beyond 2^53", input("bank.transfer", `{"amount_minor":9007199254740993}`), policy.Ask, "default"},
		{"beyond int64", input("bank.transfer", `{"amount_minor":9223372036854775808}`), policy.Ask, "default"},
		{"beyond uint64", input("bank.transfer", `{"amount_minor":18446744073709551616}`), policy.Ask, "default"},
		{"beyond double", input("bank.transfer", `{"amount_minor":1e999}`), policy.Ask, "default"},
		{"far below zero opens nothing", input("bank.transfer", `{"amount_minor":-1e999}`), policy.Ask, "default"},
		{"cheap transfer, dear action", input("bank.transfer", `{"amount_minor":1}`, withCost(5001)), policy.Ask, "expensive"},
		{"many iterations", input("loop", `{"iterations":200}`), policy.Ask, "expensive"},
		{"few iterations", input("loop", `{"iterations":100}`), policy.Ask, "default"},
		{"iterations as text closes", input("loop", `{"iterations":"many"}`), policy.Ask, "expensive"},
		{"dear, whatever the iterations are", input("loop", `{"iterations":"many"}`, withCost(5001)), policy.Ask, "expensive"},
		{"two rules ask", input("db.execute", `{"sql":"truncate t","iterations":500}`), policy.Ask, "bulk-delete,expensive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(t, set, c.in)
			if got := strings.Join(d.Rules, ","); d.Verdict != c.want || got != c.rules {
				var explained strings.Builder
				_ = d.Explain(&explained)
				t.Errorf("%s by %s, want %s by %s\n%s", d.Verdict, got, c.want, c.rules, &explained)
			}
		})
	}
}

// Each line is a condition, arguments, and the outcome of a rule with this condition for each of
// the three verdicts.
func TestDecide_Conditions(t *testing.T) {
	const (
		yes   = policy.RuleHit
		no    = policy.RuleMiss
		wrong = policy.RuleFailed
	)
	for _, c := range []struct {
		when, args string
		want       policy.RuleOutcome
	}{
		{`true`, `{}`, yes},
		{`false`, `{}`, no},
		{`args.a == 1`, `{"a":1}`, yes},
		{`args.a == 1`, `{"a":1.0}`, yes},
		{`args.a == 1`, `{"a":2}`, no},
		{`args.a == 1`, `{"a":"1"}`, no},
		{`args.a == 1`, `{}`, wrong},
		{`has(args.a)`, `{}`, no},
		{`has(args.a)`, `{"a":null}`, yes},
		{`args.a.b.c > 1`, `{"a":{"b":{"c":2}}}`, yes},
		{`args.a.b.c > 1`, `{"a":{"b":2}}`, wrong},
		{`args.?a.b.orValue(7) == 7`, `{}`, yes},
		{`args["a b"] == "x"`, `{"a b":"x"}`, yes},
		{`args.l[0] == 1`, `{"l":[1]}`, yes},
		{`args.l[1] == 1`, `{"l":[1]}`, wrong},
		{`args.l.exists(x, x > 2)`, `{"l":[1,3]}`, yes},
		{`args.l.all(x, x > 2)`, `{"l":[1,3]}`, no},
		{`args.l.size() > 2`, `{"l":[1,3]}`, no},
		{`"b" in args.l`, `{"l":["a","b"]}`, yes},
		{`args.to in ["a@x", "b@x"]`, `{"to":"c@x"}`, no},
		{`args.a > 9007199254740992`, `{"a":9007199254740993}`, yes},
		{`args.a == 9007199254740993`, `{"a":9007199254740992}`, no},
		{`args.a == 9007199254740993`, `{"a":9007199254740993}`, yes},
		{`args.a == 1000000000000000000`, `{"a":1e18}`, yes},
		{`args.a == 9007199254740993`, `{"a":9007199254740993.0}`, yes},
		{`args.a > 5u`, `{"a":18446744073709551615}`, yes},
		{`args.a > 5`, `{"a":18446744073709551616}`, wrong},
		{`args.a == 5`, `{"a":18446744073709551616}`, no},
		{`args == {"a": 5}`, `{"a":18446744073709551616}`, no},
		{`args == {"a": 5}`, `{"a":5}`, yes},
		{`args.a + 1 > 0`, `{"a":9223372036854775807}`, wrong},
		{`args.a / args.b > 0`, `{"a":1,"b":0}`, wrong},
		{`args.a < 0.5`, `{"a":0.25}`, yes},
		{`args.path.startsWith("/tmp/")`, `{"path":"/tmp/x"}`, yes},
		{`glob("*.internal", args.host)`, `{"host":"db.internal"}`, yes},
		{`glob("*.internal", args.host)`, `{"host":"db.internal.evil"}`, no},
		{`glob("a?c", args.host)`, `{"host":"a*c"}`, yes},
		// one character, however many bytes it has
		{`glob("a?c", args.host)`, `{"host":"aüc"}`, yes},
		{`glob("a??c", args.host)`, `{"host":"aüc"}`, no},
		{`glob("*?", args.host)`, `{"host":"ü"}`, yes},
		{`glob("*??", args.host)`, `{"host":"ü"}`, no},
		{`glob("*ü?", args.host)`, `{"host":"aüüß"}`, yes},
		{`glob("*", args.host)`, `{"host":5}`, wrong},
		{`sets.contains(["a", "b"], args.l)`, `{"l":["b"]}`, yes},
		{`sets.intersects(args.l, ["a", "b"])`, `{"l":["c"]}`, no},
		{`args.host.indexOf("db") == 0 && matches(args.host, "^db")`, `{"host":"db.internal"}`, yes},
		{`req.risk >= 1 && req.revision == 0`, `{}`, yes},
		{`req.requester == "bob" && req.agent == "helper" && req.run == "r-1"`, `{}`, yes},
		{`req.graph == "ops" && req.node == "act"`, `{}`, yes},
		{`"write" in req.effects`, `{}`, yes},
		{`local.hour == 10 && local.weekday == 1 && local.date == "2026-11-16"`, `{}`, yes},
		{`now.local("Asia/Singapore").hour == 18`, `{}`, yes},
		{`now.local("America/New_York").hour == 5`, `{}`, yes},
		{`now < timestamp("2026-11-16T10:00:01Z")`, `{}`, yes},
		{`args.a == true`, `{"a":"true"}`, no},
		{`int(args.a) > 3`, `{"a":"secret"}`, wrong},
		{`args.a == 1 || args.b == 1`, `{"b":1}`, yes},
		{`args.a == 1 || args.b == 1`, `{"b":2}`, wrong},
		{`args.a == 1 && args.b == 1`, `{"b":2}`, no},
		{`!(args.a == 1)`, `{}`, wrong},
		{`args.l.all(x, args.l.all(y, args.l.all(z, x + y + z >= 0)))`, `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 200), ",") + `]}`, wrong},
		{`args.s.matches("(a|b|c)+d")`, `{"s":"` + strings.Repeat("abc", 30_000) + `"}`, wrong},
		{`glob("*a*b*c*d", args.s)`, `{"s":"` + strings.Repeat("abc", 60_000) + `"}`, wrong},
	} {
		for _, then := range []policy.Verdict{policy.Allow, policy.Ask, policy.Deny} {
			t.Run(string(then)+" "+c.when+" "+c.args[:min(40, len(c.args))], func(t *testing.T) {
				d := decide(t, load(t, singleRule(string(then), c.when)), input("t", c.args))
				if d.Trace[0].Outcome != c.want {
					t.Fatalf("the rule: %+v, want %s", d.Trace[0], c.want)
				}
				counts := c.want == yes || c.want == wrong && then != policy.Allow
				if got := slices.Equal(d.Rules, []string{"it"}); got != counts || counts && d.Verdict != then {
					t.Errorf("%s by %v, though the rule was a %s", d.Verdict, d.Rules, c.want)
				}
			})
		}
	}
}

func TestDecide_TraceHasNoArgumentValues(t *testing.T) {
	for when, args := range map[string]string{
		`int(args.a) > 3`:                   `{"a":"secret"}`,
		`args[args.a] == 1`:                 `{"a":"secret"}`,
		`timestamp(args.a) < now`:           `{"a":"secret"}`,
		`duration(args.a) > duration("1s")`: `{"a":"secret"}`,
		`args.a > 5`:                        `{"a":"secret"}`,
	} {
		d := decide(t, load(t, singleRule("deny", when)), input("t", args))
		if d.Trace[0].Outcome != policy.RuleFailed || strings.Contains(d.Trace[0].Error+d.Reason, "secret") {
			t.Errorf("%s: %+v, %s", when, d.Trace[0], d.Reason)
		}
	}
}

func TestDecide_SetHasCostBudget(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("default: allow\nrules:\n")
	for i := range 400 { // each costs a few thousand units, within the limit of a rule
		doc.WriteString("- {id: r" + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ", then: deny, when: 'args.l.exists(x, x == 7)'}\n")
	}
	d := decide(t, load(t, doc.String()), input("t", `{"l":[`+strings.TrimSuffix(strings.Repeat("1,", 1500), ",")+`]}`))
	if d.Trace[0].Outcome != policy.RuleMiss {
		t.Fatalf("the first rule was not evaluated: %+v", d.Trace[0])
	}
	if last := d.Trace[len(d.Trace)-1]; last.Outcome != policy.RuleFailed || d.Verdict != policy.Deny {
		t.Errorf("the last rule was evaluated without cost: %+v; the verdict is %s", last, d.Verdict)
	}
}

func TestDecide_InvalidInputReturnsErrInput(t *testing.T) {
	set := load(t, singleRule("allow", "true"))
	for _, args := range []string{`{`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, "{\"a\":\"\xff\"}", `{} {}`, strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		d, err := set.Decide(input("t", args))
		if !errors.Is(err, policy.ErrInput) || d.Verdict != "" {
			t.Errorf("%s: %v, %v", args, d.Verdict, err)
		}
	}
}

// An unknown zone fails the rules that use local time, and only those.
func TestDecide_UnknownAccountZone(t *testing.T) {
	in := input("t", `{}`)
	in.Zone = "Mars/Olympus"
	if d := decide(t, load(t, singleRule("deny", "local.hour == 3")), in); d.Verdict != policy.Deny || d.Trace[0].Outcome != policy.RuleFailed {
		t.Errorf("%s, %+v", d.Verdict, d.Trace)
	}
	if d := decide(t, load(t, singleRule("deny", "now < timestamp('2000-01-01T00:00:00Z')")), in); d.Verdict != policy.Ask {
		t.Errorf("%s, %+v", d.Verdict, d.Trace)
	}
	in.Zone = "Local"
	if d := decide(t, load(t, singleRule("deny", "local.hour == 3")), in); d.Trace[0].Outcome != policy.RuleFailed {
		t.Errorf("the machine's own zone was used: %+v", d.Trace)
	}
}

func TestDecide_LocalTimeUsesAccountZoneThenFileZone(t *testing.T) {
	set := load(t, "default: allow\ntime_zone: Asia/Tokyo\nrules:\n- {id: night, when: 'local.hour >= 18', then: deny}\n")
	evening := atTime(time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)) // 19:00 in Tokyo
	if d := decide(t, set, input("t", `{}`, evening)); d.Verdict != policy.Deny {
		t.Error("not by the file's zone")
	}
	if d := decide(t, set, input("t", `{}`, evening, func(in *policy.Input) { in.Zone = "Europe/Zurich" })); d.Verdict != policy.Allow {
		t.Error("not by the account's zone")
	}
}

func TestDecide_DryRunIsTracedAndDoesNotCount(t *testing.T) {
	set := load(t, operations)
	sunday := atTime(time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC))
	d := decide(t, set, input("bank.transfer", `{"amount_minor":1}`, sunday))
	if d.Verdict != policy.Allow || d.DryRunVerdict != policy.Ask {
		t.Errorf("%s, rehearsed %q", d.Verdict, d.DryRunVerdict)
	}
	last := d.Trace[len(d.Trace)-1]
	if last.Rule != "quiet-hours" || !last.DryRun || last.Outcome != policy.RuleHit {
		t.Errorf("%+v", last)
	}
}

func TestDecide_Reproducible(t *testing.T) {
	set := load(t, operations)
	a := decide(t, set, input("db.execute", `{"sql":"delete","n":[1,2]}`))
	b := decide(t, load(t, operations), input("db.execute", `{"n":[ 1, 2 ],"sql":"dele\u0074e"}`))
	if asJSON(t, a) != asJSON(t, b) {
		t.Errorf("the same input, spelled otherwise:\n%s\n%s", asJSON(t, a), asJSON(t, b))
	}
	other := decide(t, set, input("db.execute", `{"sql":"delete","n":[2,1]}`))
	if other.Input == a.Input || !strings.HasPrefix(a.Input, "sha256:") || a.Policy != set.Digest() {
		t.Errorf("digests: %s and %s; policy %s", a.Input, other.Input, a.Policy)
	}
}
