package grant_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/strictjson"
)

var monday = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)

const rules = `
default: ask
defaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, remember_max: 8h}}
rules:
- {id: costly, when: 'req.cost > 1000', then: ask}
- {id: never-remember, when: 'req.tool == "bank.transfer"', then: ask, ask: {remember_max: 0s}}
- {id: no-evil, when: 'args[?"to"].orValue("") == "evil"', then: deny}
- {id: urgent, when: 'args[?"urgent"].orValue(false) == true', then: ask}
- {id: reads, when: 'req.tool == "read"', then: allow}
`

func load(t testing.TB, doc string) *policy.Set {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(doc), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func decide(t testing.TB, set *policy.Set, in policy.Input) policy.Decision {
	t.Helper()
	d, err := set.Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const approved = `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":["x"]}`

func report(args string) policy.Input {
	return policy.Input{
		Account: "acme", Environment: "prod", Graph: "ops", Requester: "bob", Tool: "report", Args: json.RawMessage(args), Cost: 2000, At: monday,
	}
}

var terms = grant.Terms{ID: "g-1", By: "ann", Request: "req-1", Now: monday, TTL: 24 * time.Hour, MaxUses: 3}

func narrowest(t testing.TB, set *policy.Set) grant.Grant {
	t.Helper()
	in := report(approved)
	g, err := grant.Narrowest(in, decide(t, set, in), terms)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// relaxed lets the path and the number of rows vary, and allows two formats.
func relaxed(t testing.TB, set *policy.Set) grant.Grant {
	t.Helper()
	g := narrowest(t, set)
	for pointer, c := range map[string]grant.Constraint{
		"/path": grant.HasPrefix("s3://b/2026/"), "/rows": grant.AtMost(1000), "/opts/fmt": grant.OneOf(json.RawMessage(`"csv"`), json.RawMessage(`"json"`)),
		"/tags/0": grant.Anything(),
	} {
		var err error
		if g, err = g.Relax(pointer, c); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestMatch_Arguments(t *testing.T) {
	set := load(t, rules)
	narrow, wide := narrowest(t, set), relaxed(t, set)
	with := func(path, rows, more string) string {
		return `{"path":` + path + `,"rows":` + rows + `,"opts":{"fmt":"csv"},"tags":["x"]` + more + `}`
	}
	const path, rows = `"s3://b/2026/11/a"`, `500`
	for _, c := range []struct {
		name, args string
		narrow     string // "" matches; otherwise a part of the reason
		wide       string
	}{
		{"the approved arguments", approved, "", ""},
		{"other encoding", `{"tags":[ "x" ],"opts":{"fmt":"\u0063sv"},"rows":500,"path":"s3:\/\/b/2026/11/a"}`, "", ""},
		{"another path below", with(`"s3://b/2026/12/z"`, rows, ``), "/path differs", ""},
		{"another path", with(`"s3://c/2026/12/z"`, rows, ``), "/path differs", "does not have the granted prefix"},
		{"the prefix itself", with(`"s3://b/2026/"`, rows, ``), "differs", ""},
		{"climbing", with(`"s3://b/2026/../secrets"`, rows, ``), "differs", "contains \"..\""},
		{"dots in percent escapes", with(`"s3://b/2026/%2E%2e/secrets"`, rows, ``), "differs", "contains \"..\""},
		{"dots in double percent escapes", with(`"s3://b/2026/%252e./secrets"`, rows, ``), "differs", "contains \"..\""},
		{"escaped percent signs", with(`"s3://b/2026/%%32%65%%32%65/secrets"`, rows, ``), "differs", "contains \"..\""},
		{"endless percent escapes", with(`"s3://b/2026/%2525252525252e./secrets"`, rows, ``), "differs", "contains \"..\""},
		{"overlong UTF-8 dots", with(`"s3://b/2026/%c0%ae%c0%ae/secrets"`, rows, ``), "differs", "contains \"..\""},
		{"full-width dots", with(`"s3://b/2026/．．/secrets"`, rows, ``), "differs", "contains \"..\""},
		{"escaped newline", with(`"s3://b/2026/x%0d%0ay"`, rows, ``), "differs", "shell metacharacter"},
		{"escaped NUL", with(`"s3://b/2026/x%2500"`, rows, ``), "differs", "shell metacharacter"},
		{"escaped letter", with(`"s3://b/2026/x%20%C3%A9"`, rows, ``), "differs", ""},
		{"a second command", with(`"s3://b/2026/x;rm"`, rows, ``), "differs", "shell metacharacter"},
		{"a pipe", with(`"s3://b/2026/x|sh"`, rows, ``), "differs", "shell metacharacter"},
		{"a substitution", with(`"s3://b/2026/$(id)"`, rows, ``), "differs", "shell metacharacter"},
		{"backticks", with("\"s3://b/2026/`id`\"", rows, ``), "differs", "shell metacharacter"},
		{"another word", with(`"s3://b/2026/x --output=y"`, rows, ``), "differs", "shell metacharacter"},
		{"another line", with(`"s3://b/2026/x\ny"`, rows, ``), "differs", "shell metacharacter"},
		{"a NUL", with(`"s3://b/2026/x\u0000"`, rows, ``), "differs", "shell metacharacter"},
		{"a backslash", with(`"s3://b/2026/x\\y"`, rows, ``), "differs", "shell metacharacter"},
		{"text direction override", with(`"s3://b/2026/x\u202ey"`, rows, ``), "differs", "shell metacharacter"},
		{"a line separator", with(`"s3://b/2026/x\u2028y"`, rows, ``), "differs", "shell metacharacter"},
		{"fewer rows", with(path, `1`, ``), "differs", ""},
		{"the bound", with(path, `1000`, ``), "differs", ""},
		{"more rows", with(path, `1001`, ``), "differs", "more than was granted"},
		{"slightly more", with(path, `1000.0000000000000000000001`, ``), "differs", "fraction"},
		{"very large number", with(path, `1e300`, ``), "differs", "more than was granted"},
		{"number with a huge exponent", with(path, `1e999999999`, ``), "differs", "not a comparable number"},
		{"number with a tiny exponent", with(path, `1e-999999999`, ``), "differs", "not a comparable number"},
		{"negative", with(path, `-5`, ``), "differs", "is negative"},
		{"rows as text", with(path, `"5"`, ``), "is a string and not a number", "is a string and not a number"},
		{"rows as null", with(path, `null`, ``), "is a null", "is a null"},
		{"path as list", with(`["s3://b/2026/11/a"]`, rows, ``), "/path/0 is new", "/path/0 is new"},
		{"another format", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"json"},"tags":["x"]}`, "differs", ""},
		{"a third format", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"exe"},"tags":["x"]}`, "differs", "not one of the granted values"},
		{"any tag", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":["y; rm"]}`, "differs", ""},
		{"a tag of another type", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":[1]}`, "a number and not a string", "a number and not a string"},
		{"a second tag", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":["x","y"]}`, "/tags/1 is new", "/tags/1 is new"},
		{"no tag", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":[]}`, "/tags is new", "/tags is new"},
		{"tags as an object", `{"path":"s3://b/2026/11/a","rows":500,"opts":{"fmt":"csv"},"tags":{"0":"x"}}`, "different object or array", "different object or array"},
		{"a new argument", with(path, rows, `,"shell":"x"`), "/shell is new", "/shell is new"},
		{"a new argument that is null", with(path, rows, `,"shell":null`), "/shell is new", "/shell is new"},
		{"a missing argument", `{"path":"s3://b/2026/11/a","rows":500,"tags":["x"]}`, "/opts/fmt is missing", "/opts/fmt is missing"},
		{"no arguments", `{}`, " is new", " is new"},
		{"a list", `[]`, "the rules say deny", "the rules say deny"},
		{"another rule joins", with(path, rows, `,"urgent":true`), "rule urgent was not part", "rule urgent was not part"},
		{"a deny", with(path, rows, `,"to":"evil"`), "the rules say deny", "the rules say deny"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := report(c.args)
			for kind, try := range map[string]struct {
				g    grant.Grant
				want string
			}{"narrow": {narrow, c.narrow}, "wide": {wide, c.wide}} {
				use, err := try.g.Match(in, decide(t, set, in), grant.Usage{}, monday)
				switch {
				case try.want == "" && (err != nil || use.Grant != "g-1"):
					t.Errorf("%s: %v", kind, err)
				case try.want != "" && (err == nil || !strings.Contains(err.Error(), try.want)):
					t.Errorf("%s: %v, want %q", kind, err, try.want)
				}
			}
		})
	}
}

func TestMatch_Bounds(t *testing.T) {
	set := load(t, rules)
	for name, c := range map[string]struct {
		in     func(*policy.Input)
		grant  func(*grant.Grant)
		usage  grant.Usage
		after  time.Duration
		reason grant.MismatchReason // "" matches
	}{
		"at once":                {},
		"the last moment":        {after: 8*time.Hour - time.Nanosecond},
		"remember_max is 8h":     {after: 8 * time.Hour, reason: grant.MismatchExpired},
		"before it was given":    {after: -time.Second, reason: grant.MismatchExpired},
		"one use left":           {usage: grant.Usage{Uses: 2}},
		"used up":                {usage: grant.Usage{Uses: 3}, reason: grant.MismatchUsedUp},
		"negative uses":          {usage: grant.Usage{Uses: -1}, reason: grant.MismatchUsedUp},
		"revoked":                {grant: func(g *grant.Grant) { *g = g.Revoke(monday) }, reason: grant.MismatchRevoked},
		"other account":          {in: func(in *policy.Input) { in.Account = "other" }, reason: grant.MismatchScope},
		"other environment":      {in: func(in *policy.Input) { in.Environment = "staging" }, reason: grant.MismatchScope},
		"other graph":            {in: func(in *policy.Input) { in.Graph = "other" }, reason: grant.MismatchScope},
		"other requester":        {in: func(in *policy.Input) { in.Requester = "carl" }, reason: grant.MismatchScope},
		"no requester":           {in: func(in *policy.Input) { in.Requester = "" }, reason: grant.MismatchScope},
		"other tool":             {in: func(in *policy.Input) { in.Tool = "reports" }, reason: grant.MismatchScope},
		"by the default now":     {in: func(in *policy.Input) { in.Cost = 0 }, reason: grant.MismatchRule},
		"allowed anyway":         {in: func(in *policy.Input) { in.Tool, in.Cost = "read", 0 }, reason: grant.MismatchVerdict},
		"remember_max is 0":      {in: func(in *policy.Input) { in.Tool = "bank.transfer" }, reason: grant.MismatchRule},
		"budget":                 {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: "/rows", Max: 1000} }, usage: grant.Usage{Amount: 500}},
		"budget used up":         {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: "/rows", Max: 1000} }, usage: grant.Usage{Amount: 501}, reason: grant.MismatchAmount},
		"budget overflow":        {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: "/rows", Max: 1000} }, usage: grant.Usage{Amount: -1 << 62}, reason: grant.MismatchAmount},
		"budget of a non-number": {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: "/path", Max: 1000} }, reason: grant.MismatchAmount},
		"budget of cost":         {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: grant.Cost, Max: 5000} }, usage: grant.Usage{Amount: 3000}},
		"cost exceeds budget":    {grant: func(g *grant.Grant) { g.Budget = &grant.Budget{Of: grant.Cost, Max: 5000} }, usage: grant.Usage{Amount: 3001}, reason: grant.MismatchAmount},
		"extended manually":      {grant: func(g *grant.Grant) { g.NotAfter = monday.AddDate(1, 0, 0) }, after: 8 * time.Hour, reason: grant.MismatchRule},
		"unknown constraint":     {grant: func(g *grant.Grant) { g.Args["/rows"] = grant.Constraint{Op: "about", Type: "number", Containers: "{"} }, reason: grant.MismatchArgument},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := narrowest(t, set), report(approved)
			if c.grant != nil {
				c.grant(&g)
			}
			if c.in != nil {
				c.in(&in)
			}
			_, err := g.Match(in, decide(t, set, in), c.usage, monday.Add(c.after))
			mismatch, ok := errors.AsType[*grant.Mismatch](err)
			if c.reason == "" && err != nil || c.reason != "" && (!ok || mismatch.Reason != c.reason) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

// A grant is valid for the rule as it was. A rule that becomes stricter is not bypassed by an old
// approval.
func TestMatch_ChangedRuleDoesNotMatch(t *testing.T) {
	g, in := narrowest(t, load(t, rules)), report(approved)
	for name, doc := range map[string]string{
		"other people":    strings.Replace(rules, "'req.cost > 1000', then: ask", "'req.cost > 1000', then: ask, ask: {groups: [{from: ['group:finops'], count: 2}]}", 1),
		"other default":   strings.Replace(rules, "deadline: 1h", "deadline: 2h", 1),
		"other condition": strings.Replace(rules, "req.cost > 1000", "req.cost > 500", 1),
	} {
		_, err := g.Match(in, decide(t, load(t, doc), in), grant.Usage{}, monday)
		if mismatch, ok := errors.AsType[*grant.Mismatch](err); !ok || mismatch.Reason != grant.MismatchRule {
			t.Errorf("%s: %v", name, err)
		}
	}
	same := strings.Replace(rules, "then: ask}", "then: ask, reason: other words}", 1)
	if _, err := g.Match(in, decide(t, load(t, same), in), grant.Usage{}, monday); err != nil {
		t.Errorf("only the reason changed: %v", err)
	}
	shorter := strings.Replace(rules, "remember_max: 8h", "remember_max: 1h", 1)
	if _, err := g.Match(in, decide(t, load(t, shorter), in), grant.Usage{}, monday.Add(2*time.Hour)); err == nil {
		t.Error("remembered for longer than the rules now allow")
	}
}

func TestNarrowest_RequiresRememberMax(t *testing.T) {
	set := load(t, rules)
	for name, c := range map[string]struct {
		in    func(*policy.Input)
		terms func(*grant.Terms)
	}{
		"remember_max 0":    {in: func(in *policy.Input) { in.Tool = "bank.transfer" }},
		"denied":            {in: func(in *policy.Input) { in.Args = json.RawMessage(`{"to":"evil"}`) }},
		"allowed":           {in: func(in *policy.Input) { in.Tool, in.Cost = "read", 0 }},
		"no uses":           {terms: func(t *grant.Terms) { t.MaxUses = 0 }},
		"no time":           {terms: func(t *grant.Terms) { t.TTL = 0 }},
		"no now":            {terms: func(t *grant.Terms) { t.Now = time.Time{} }},
		"budget of a text":  {terms: func(t *grant.Terms) { t.Budget = &grant.Budget{Of: "/path", Max: 1} }},
		"budget below zero": {terms: func(t *grant.Terms) { t.Budget = &grant.Budget{Of: "/rows", Max: -1} }},
	} {
		in, with := report(approved), terms
		if c.in != nil {
			c.in(&in)
		}
		if c.terms != nil {
			c.terms(&with)
		}
		if g, err := grant.Narrowest(in, decide(t, set, in), with); !errors.Is(err, grant.ErrNotRememberable) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	g := narrowest(t, set)
	if g.NotAfter != monday.Add(8*time.Hour) || g.By != "ann" || g.Request != "req-1" || len(g.Args) != 4 {
		t.Errorf("%+v", g)
	}
}

func TestRelax_StillMatchesApprovedArguments(t *testing.T) {
	set := load(t, rules)
	for name, c := range map[string]struct {
		pointer string
		to      grant.Constraint
	}{
		"no such argument": {"/nope", grant.Anything()},
		"another prefix":   {"/path", grant.HasPrefix("s3://c/")},
		"empty prefix":     {"/path", grant.HasPrefix("")},
		// s3://backups and s3://b@elsewhere have this prefix too
		"half a host":         {"/path", grant.HasPrefix("s3://b")},
		"prefix of a number":  {"/rows", grant.HasPrefix("5")},
		"bound below":         {"/rows", grant.AtMost(499)},
		"bound above":         {"/rows", grant.AtLeast(501)},
		"negative bound":      {"/rows", grant.AtLeast(-1)},
		"bound of a text":     {"/path", grant.AtMost(5)},
		"choice without it":   {"/rows", grant.OneOf(json.RawMessage(`1`), json.RawMessage(`2`))},
		"choice of nothing":   {"/rows", grant.OneOf()},
		"another exact value": {"/rows", grant.Constraint{Op: grant.Eq, Value: json.RawMessage(`7`)}},
		"unknown":             {"/rows", grant.Constraint{Op: "about", Value: json.RawMessage(`7`)}},
		"invalid choice":      {"/rows", grant.OneOf(json.RawMessage(`{"a":1,"a":2}`), json.RawMessage(`500`))},
	} {
		g := narrowest(t, set)
		after, err := g.Relax(c.pointer, c.to)
		if err == nil {
			t.Errorf("%s: %+v", name, after.Args)
		}
	}
	g := narrowest(t, set)
	once, err := g.Relax("/rows", grant.AtLeast(500))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := once.Relax("/rows", grant.Anything()); err == nil {
		t.Error("relaxed twice: the approved value is no longer known")
	}
	if g.Args["/rows"].Op != grant.Eq {
		t.Error("Relax changed the original grant")
	}
	in := report(strings.Replace(approved, "500", "70000", 1))
	if _, err := once.Match(in, decide(t, set, in), grant.Usage{}, monday); err != nil {
		t.Errorf("at least 500: %v", err)
	}
}

func TestMismatch_HoldsNoArguments(t *testing.T) {
	set := load(t, rules)
	in := report(`{"path":"s3://b/2026/secret;","rows":"secret","opts":{"fmt":"secret"},"tags":["x"]}`)
	_, err := relaxed(t, set).Match(in, decide(t, set, in), grant.Usage{}, monday)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A grant is stored as JSON and keeps its meaning.
func TestGrant_JSON(t *testing.T) {
	set := load(t, rules)
	text, err := json.Marshal(relaxed(t, set))
	if err != nil {
		t.Fatal(err)
	}
	var g grant.Grant
	if err := strictjson.Decode(text, &g); err != nil {
		t.Fatal(err)
	}
	in := report(strings.Replace(approved, "500", "1000", 1))
	if _, err := g.Match(in, decide(t, set, in), grant.Usage{}, monday); err != nil {
		t.Error(err)
	}
	in = report(strings.Replace(approved, "500", "1001", 1))
	if _, err := g.Match(in, decide(t, set, in), grant.Usage{}, monday); err == nil {
		t.Error("the bound was lost")
	}
}

// The narrowest grant matches the approved arguments in any encoding, and nothing else.
func FuzzNarrowest(f *testing.F) {
	f.Add(approved, `{"a":[1]}`)
	f.Add(`{"a":["x"]}`, `{"a":{"0":"x"}}`)
	f.Add(`{"a/b":1}`, `{"a":{"b":1}}`)
	f.Add(`{"a/b":{"c":1}}`, `{"a":{"b/c":1}}`)
	f.Add(`{"a":{}}`, `{"a":[]}`)
	f.Add(`5`, `5.0`)
	f.Add(`{}`, ``)
	set := load(f, rules)
	f.Fuzz(func(t *testing.T, first, second string) {
		in, other := report(first), report(second)
		d, err := set.Decide(in)
		if err != nil || d.Verdict != policy.Ask {
			return
		}
		g, err := grant.Narrowest(in, d, terms)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Match(in, d, grant.Usage{}, monday); err != nil {
			t.Fatalf("the approved arguments do not match: %v", err)
		}
		again, err := set.Decide(other)
		if err != nil {
			return
		}
		_, err = g.Match(other, again, grant.Usage{}, monday)
		if err == nil && canonical(t, first) != canonical(t, second) {
			t.Fatalf("%s was approved, but %s matches", first, second)
		}
	})
}

func canonical(t *testing.T, args string) string {
	if args == "" {
		args = "{}"
	}
	text, err := strictjson.Canonical([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// One rule asks different people at every node, by a placeholder. An approval at one node is not
// valid at another.
func TestMatch_StricterRequirementElsewhereDoesNotMatch(t *testing.T) {
	set := load(t, `
default: allow
rules:
- {id: owners, when: 'true', then: ask, ask: {groups: [{from: ["group:owners-${req.node}"]}], deadline: 1h, remember_max: 8h}}
`)
	in := report(approved)
	in.Node = "archive"
	g, err := grant.Narrowest(in, decide(t, set, in), terms)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Match(in, decide(t, set, in), grant.Usage{}, monday); err != nil {
		t.Errorf("at the same node: %v", err)
	}
	in.Node = "publish"
	if _, err := g.Match(in, decide(t, set, in), grant.Usage{}, monday); err == nil || !strings.Contains(err.Error(), "require more") {
		t.Errorf("an approval at archive is valid at publish: %v", err)
	}
}

// A cost budget needs a known cost. Otherwise it would never be used up.
func TestGrant_CostBudgetNeedsKnownCost(t *testing.T) {
	in := policy.Input{Tool: "t", UnknownFields: policy.OptionalFields}
	decision := policy.Decision{Verdict: policy.Ask, Requirement: &policy.Requirement{RememberMax: policy.Duration(time.Hour)}}
	terms := grant.Terms{Now: time.Unix(1e9, 0), TTL: time.Hour, MaxUses: 1, Budget: &grant.Budget{Of: grant.Cost, Max: 10}}
	if _, err := grant.Narrowest(in, decision, terms); !errors.Is(err, grant.ErrNotRememberable) {
		t.Errorf("a budget of an unknown cost: %v", err)
	}
}
