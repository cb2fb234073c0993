package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
)

// merged returns the requirement of two rules together.
func merged(t *testing.T, first, second string) *policy.Requirement {
	t.Helper()
	doc := "default: deny\nrules:\n- {id: a, when: 'true', then: ask, ask: " + first + "}\n- {id: b, when: 'true', then: ask, ask: " + second + "}\n"
	return decide(t, load(t, doc), input("t", `{}`)).Requirement
}

func TestMerge_TakesStrictestParts(t *testing.T) {
	const base = `groups: [{from: ["group:x"]}], deadline: 24h`
	group := func(count int, from ...string) policy.Group { return policy.Group{From: from, Count: count} }
	for name, c := range map[string]struct {
		first, second string
		want          func(*policy.Requirement)
	}{
		"groups are joined":         {base, `groups: [{from: ["group:y"], count: 2}], deadline: 24h`, func(r *policy.Requirement) { r.Groups = append(r.Groups, group(2, "group:y")) }},
		"the higher count":          {base, `groups: [{from: ["group:x"], count: 3}], deadline: 24h`, func(r *policy.Requirement) { r.Groups[0].Count = 3 }},
		"not the lower count":       {`groups: [{from: ["group:x"], count: 3}], deadline: 24h`, base, func(r *policy.Requirement) { r.Groups[0].Count = 3 }},
		"same people, other order":  {`groups: [{from: ["group:y", "group:x"]}], deadline: 24h`, `groups: [{from: ["group:x", "group:y"]}], deadline: 24h`, func(r *policy.Requirement) { r.Groups[0].From = []string{"group:x", "group:y"} }},
		"anyone is among them":      {base, `groups: [{from: [anyone]}], deadline: 24h`, func(*policy.Requirement) {}},
		"two of anyone are more":    {base, `groups: [{from: [anyone], count: 2}], deadline: 24h`, func(r *policy.Requirement) { r.Groups = append(r.Groups, group(1, "anyone")) }},
		"shorter deadline":          {base, `groups: [{from: ["group:x"]}], deadline: 1h`, func(r *policy.Requirement) { r.Deadline = policy.Duration(time.Hour) }},
		"expire before escalate":    {base + `, on_timeout: escalate`, base + `, on_timeout: expire`, func(*policy.Requirement) {}},
		"expire, the other way":     {base, base + `, on_timeout: escalate`, func(*policy.Requirement) {}},
		"both escalate":             {base + `, on_timeout: escalate`, base + `, on_timeout: escalate`, func(r *policy.Requirement) { r.OnTimeout = requirement.EscalateOnTimeout }},
		"higher min_auth":           {base + `, min_auth: slack_linked`, base + `, min_auth: sso_mfa`, func(r *policy.Requirement) { r.MinAuth = requirement.AuthMFA }},
		"higher, the other way":     {base + `, min_auth: hardware`, base + `, min_auth: token`, func(r *policy.Requirement) { r.MinAuth = requirement.AuthHardware }},
		"one min_auth":              {base, base + `, min_auth: sso`, func(r *policy.Requirement) { r.MinAuth = requirement.AuthSSO }},
		"all who are excluded":      {base + `, separation_of_duties: [requester]`, base + `, separation_of_duties: [author, requester]`, func(r *policy.Requirement) { r.Exclude = []requirement.Duty{"requester", "author"} }},
		"editable in both":          {base + `, editable: [/a, /b]`, base + `, editable: [/b, /c]`, func(r *policy.Requirement) { r.Editable = []string{"/b"} }},
		"editable below":            {base + `, editable: [/a]`, base + `, editable: [/a/b, /ab]`, func(r *policy.Requirement) { r.Editable = []string{"/a/b"} }},
		"all is editable":           {base + `, editable: [""]`, base + `, editable: [/a]`, func(r *policy.Requirement) { r.Editable = []string{"/a"} }},
		"one says nothing editable": {base + `, editable: [/a]`, base, func(*policy.Requirement) {}},
		"shorter remember_max":      {base + `, remember_max: 8h`, base + `, remember_max: 1h`, func(r *policy.Requirement) { r.RememberMax = policy.Duration(time.Hour) }},
		"never remember":            {base + `, remember_max: 8h`, base, func(*policy.Requirement) {}},
		"longer undo":               {base + `, undo: 30s`, base + `, undo: 1m`, func(r *policy.Requirement) { r.Undo = policy.Duration(time.Minute) }},
		"undo in one":               {base + `, undo: 30s`, base, func(r *policy.Requirement) { r.Undo = policy.Duration(30 * time.Second) }},
		"fewer denials":             {base + `, deny_count: 3`, base + `, deny_count: 2`, func(r *policy.Requirement) { r.DenyCount = 2 }},
		"all routes":                {base + `, route: r1`, base + `, route: r2`, func(r *policy.Requirement) { r.Routes = []string{"r1", "r2"} }},
		"widened to whom both let": {
			`groups: [{from: ["group:x"], widen: ["group:m", "group:n"]}], deadline: 24h`, `groups: [{from: ["group:x"], widen: ["group:n", "group:o"]}], deadline: 24h`,
			func(r *policy.Requirement) { r.Groups[0].Widen = []string{"group:n"} },
		},
		"one does not widen":         {`groups: [{from: ["group:x"], widen: ["group:m"]}], deadline: 24h`, base, func(*policy.Requirement) {}},
		"verbs in both":              {base + `, verbs: [approve, reject, claim, ask]`, base + `, verbs: [reject, approve, ask, abandon]`, func(r *policy.Requirement) { r.Verbs = []requirement.Verb{"approve", "reject", "ask"} }},
		"verbs in one":               {base, base + `, verbs: [reject, approve]`, func(r *policy.Requirement) { r.Verbs = []requirement.Verb{"approve", "reject"} }},
		"reject before expire":       {base + `, on_timeout: reject`, base, func(r *policy.Requirement) { r.OnTimeout = requirement.RejectOnTimeout }},
		"reject before default":      {base + `, on_timeout: default`, base + `, on_timeout: reject`, func(r *policy.Requirement) { r.OnTimeout = requirement.RejectOnTimeout }},
		"one escalation returns":     {base + `, on_escalate: return`, base, func(*policy.Requirement) {}},
		"one returns, the other way": {base + `, on_escalate: next_step`, base + `, on_escalate: return`, func(r *policy.Requirement) { r.OnEscalate = requirement.EscalateToNextStep }},
		"both escalations return":    {base + `, on_escalate: return`, base + `, on_escalate: return`, func(r *policy.Requirement) { r.OnEscalate = requirement.EscalateReturns }},
		"all reasons for edits":      {base + `, edit_reasons: [typo, scope]`, base + `, edit_reasons: [scope, risk]`, func(r *policy.Requirement) { r.EditReasons = []string{"typo", "scope", "risk"} }},
		"reasons in one":             {base, base + `, edit_reasons: [typo]`, func(r *policy.Requirement) { r.EditReasons = []string{"typo"} }},
		"all reasons to reject":      {base + `, reject_reasons: [risk]`, base + `, reject_reasons: [cost, risk]`, func(r *policy.Requirement) { r.RejectReasons = []string{"risk", "cost"} }},
		"all that is typed":          {base + `, confirm: [/b]`, base + `, confirm: [/a, /b]`, func(r *policy.Requirement) { r.Confirm = []string{"/a", "/b"} }},
		"all that is masked":         {base + `, sensitive: [/b]`, base + `, sensitive: [/a, /b]`, func(r *policy.Requirement) { r.Sensitive = []string{"/a", "/b"} }},
		"visible to one audience":    {base, base + `, visible_to: [requester, "group:x"]`, func(r *policy.Requirement) { r.VisibleTo = [][]string{{"group:x", "requester"}} }},
		"visible to the smaller one": {base + `, visible_to: ["group:x"]`, base + `, visible_to: [requester, "group:x"]`, func(r *policy.Requirement) { r.VisibleTo = [][]string{{"group:x"}} }},
		"visible to those in both":   {base + `, visible_to: ["group:x"]`, base + `, visible_to: ["group:y"]`, func(r *policy.Requirement) { r.VisibleTo = [][]string{{"group:x"}, {"group:y"}} }},
		"the later stage":            {base, `groups: [{from: ["group:x"], stage: 2}], deadline: 24h`, func(r *policy.Requirement) { r.Groups[0].Stage = 2 }},
		"anyone in a stage is kept": {base, `groups: [{from: [anyone], stage: 1}], deadline: 24h`, func(r *policy.Requirement) {
			r.Groups = append(r.Groups, policy.Group{From: []string{"anyone"}, Count: 1, Stage: 1})
		}},
		"those who wait move together": {
			`groups: [{from: ["group:x"]}, {from: ["group:y"], stage: 1}], deadline: 24h`, `groups: [{from: ["group:z"]}, {from: ["group:x"], stage: 1}], deadline: 24h`,
			func(r *policy.Requirement) {
				r.Groups = []policy.Group{{From: []string{"group:x"}, Count: 1, Stage: 1}, {From: []string{"group:y"}, Count: 1, Stage: 2}, {From: []string{"group:z"}, Count: 1}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := &policy.Requirement{Groups: []policy.Group{group(1, "group:x")}, OnTimeout: requirement.ExpireOnTimeout, Deadline: policy.Duration(24 * time.Hour), DenyCount: 1}
			c.want(want)
			got := merged(t, "{"+c.first+"}", "{"+c.second+"}")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for _, one := range []string{c.first, c.second} {
				alone := merged(t, "{"+one+"}", "{"+one+"}")
				if weaker := requirement.Weakenings(alone, got); len(weaker) > 0 {
					t.Errorf("weaker than {%s}: %v", one, weaker)
				}
			}
		})
	}
}

// "A dba, and anyone" are two people, in one rule and when merged. A rule with anyone is satisfied
// by the people that another rule names.
func TestMerge_GroupsOfOneRuleStaySeparate(t *testing.T) {
	const dba, fourEyes = `{groups: [{from: ["group:dba"]}], deadline: 1h}`, `{groups: [{from: ["group:dba"]}, {from: [anyone]}], deadline: 1h}`
	const filled = `{groups: [{from: ["group:${req.graph}"]}, {from: ["group:dba"]}], deadline: 1h}`
	for name, c := range map[string]struct {
		rules []string
		want  int
	}{
		"alone":               {[]string{fourEyes}, 2},
		"twice":               {[]string{fourEyes, fourEyes}, 2},
		"with one of them":    {[]string{fourEyes, dba}, 2},
		"the other way":       {[]string{dba, fourEyes}, 2},
		"with another group":  {[]string{fourEyes, `{groups: [{from: ["group:finops"]}], deadline: 1h}`}, 2},
		"with anyone":         {[]string{fourEyes, `{groups: [{from: [anyone]}], deadline: 1h}`}, 2},
		"filled in":           {[]string{filled}, 2},
		"filled in, and once": {[]string{filled, dba}, 2},
		"once, and filled in": {[]string{dba, filled}, 2},
	} {
		doc := "default: deny\nrules:\n"
		for n, ask := range c.rules {
			doc += fmt.Sprintf("- {id: r%d, when: 'true', then: ask, ask: %s}\n", n, ask)
		}
		need := decide(t, load(t, doc), input("t", `{}`, func(in *policy.Input) { in.Graph = "dba" })).Requirement
		people := 0
		for _, g := range need.Groups {
			people += g.Count
		}
		if people != c.want {
			t.Errorf("%s: %d people: %v", name, people, need.Groups)
		}
	}
}

// One remaining group is as strict as each earlier one, but one person does not count twice.
func TestWeakenings_FewerPeople(t *testing.T) {
	need := func(groups ...policy.Group) *policy.Requirement { return &policy.Requirement{Groups: groups} }
	dba, either, anyone := policy.Group{From: []string{"group:dba"}, Count: 1}, policy.Group{From: []string{"group:dba", "group:ops"}, Count: 1}, policy.Group{From: []string{"anyone"}, Count: 1}
	for _, before := range []*policy.Requirement{need(dba, either), need(dba, anyone)} {
		if got := requirement.Weakenings(before, need(dba)); !slices.Equal(got, []string{"2 different people down to 1"}) {
			t.Errorf("%v: %q", before.Groups, got)
		}
	}
}

func TestMerge_DefaultsFillMissingFields(t *testing.T) {
	set := load(t, operations)
	need := decide(t, set, input("db.execute", `{"sql":"truncate t","iterations":500}`)).Requirement
	want := &policy.Requirement{
		Groups: []policy.Group{
			{From: []string{"group:db-oncall"}, Count: 1}, {From: []string{"group:owners:ops"}, Count: 1}, {From: []string{"group:finops"}, Count: 1},
		},
		Exclude: []requirement.Duty{"requester", "author"}, Deadline: policy.Duration(4 * time.Hour), OnTimeout: requirement.ExpireOnTimeout, MinAuth: requirement.AuthSSO,
		Editable: []string{"/limit"}, DenyCount: 1,
	}
	if diff := cmp.Diff(want, need); diff != "" {
		t.Error(diff)
	}
}

// A placeholder value comes from the input and is not expanded again.
func TestMerge_PlaceholdersAreExpandedOnce(t *testing.T) {
	set := load(t, "default: ask\ndefaults: {ask: {groups: [{from: ['group:${req.graph}:${req.account}']}], deadline: 1h}}\n")
	got := decide(t, set, input("t", `{}`, func(in *policy.Input) { in.Graph = "${req.requester}" })).Requirement.Groups[0].From[0]
	if got != "group:${req.requester}:acme" {
		t.Error(got)
	}
}

// Placeholders in widen are expanded too. Names that are already in from are removed.
func TestMerge_WidenPlaceholdersAreExpanded(t *testing.T) {
	set := load(t, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba'], widen: ['group:${req.graph}', 'group:heads:${req.graph}']}], deadline: 1h}}\n")
	for graph, want := range map[string]string{"ops": "1 of group:dba, later also group:heads:ops or group:ops", "dba": "1 of group:dba, later also group:heads:dba"} {
		got := decide(t, set, input("t", `{}`, func(in *policy.Input) { in.Graph = graph })).Requirement.Groups[0].String()
		if got != want {
			t.Errorf("%s: %s", graph, got)
		}
	}
}

// Expanded names can be equal. A duplicate name counts once and does not make a second group.
func TestMerge_ExpandedNamesAreUnique(t *testing.T) {
	got := merged(t, "{groups: [{from: ['group:t', 'group:${req.tool}'], widen: ['group:m', 'group:m${req.agent}']}], deadline: 1h}", "{groups: [{from: ['group:t'], widen: ['group:m']}], deadline: 1h}")
	if want := []policy.Group{{From: []string{"group:t"}, Count: 1, Widen: []string{"group:m"}}}; !cmp.Equal(got.Groups, want) {
		t.Errorf("%+v", got.Groups)
	}
}

func TestWeakenings_ListsEveryDifference(t *testing.T) {
	strict := func() *policy.Requirement {
		return &policy.Requirement{
			Groups: []policy.Group{{From: []string{"group:x"}, Count: 2, Widen: []string{"group:m"}}, {From: []string{"user:ann"}, Count: 1, Stage: 1}}, Verbs: []requirement.Verb{"approve", "reject", "ask"}, Exclude: []requirement.Duty{"requester"}, Deadline: policy.Duration(time.Hour), OnTimeout: requirement.ExpireOnTimeout,
			MinAuth: requirement.AuthSSO, Editable: []string{"/a"}, RememberMax: 0, Undo: policy.Duration(time.Minute), DenyCount: 1, EditReasons: []string{"typo"}, RejectReasons: []string{"risk"}, VisibleTo: [][]string{{"group:x", "requester"}}, Sensitive: []string{"/iban"},
		}
	}
	for want, change := range map[string]func(*policy.Requirement){
		"": func(r *policy.Requirement) {
			r.Deadline /= 2
			r.Groups[0].Count = 3
			r.Editable = []string{"/a/b"}
			r.Groups[0].Widen = nil
			r.Verbs = []requirement.Verb{"reject", "approve"}
			r.OnTimeout = requirement.RejectOnTimeout
			r.EditReasons = []string{"typo", "scope"}
			r.VisibleTo = [][]string{{"group:x"}, {"group:y"}}
			r.Sensitive = []string{""}
			r.Groups[1].Stage = 3
		},
		"group:n can be added to group:x now":                 func(r *policy.Requirement) { r.Groups[0].Widen = []string{"group:m", "group:n", "group:x"} },
		"abandon is allowed now":                              func(r *policy.Requirement) { r.Verbs = append(r.Verbs, "abandon") },
		"deadline up from 1h to 2h":                           func(r *policy.Requirement) { r.Deadline *= 2 },
		"count of group:x down from 2 to 1":                   func(r *policy.Requirement) { r.Groups[0].Count = 1 },
		"2 of group:x, later also group:m no longer required": func(r *policy.Requirement) { r.Groups[0].From = []string{"group:x", "group:y"} },
		"on_timeout changes from expire to escalate":          func(r *policy.Requirement) { r.OnTimeout = requirement.EscalateOnTimeout },
		"min_auth down from sso to none":                      func(r *policy.Requirement) { r.MinAuth = "" },
		"remember_max up from 0s to 1h":                       func(r *policy.Requirement) { r.RememberMax = policy.Duration(time.Hour) },
		"undo down from 1m to 30s":                            func(r *policy.Requirement) { r.Undo /= 2 },
		"deny_count up from 1 to 2":                           func(r *policy.Requirement) { r.DenyCount = 2 },
		"requester is no longer excluded":                     func(r *policy.Requirement) { r.Exclude = nil },
		"a rejection needs no reason code any more":           func(r *policy.Requirement) { r.RejectReasons = nil },
		"an edit needs no reason code any more":               func(r *policy.Requirement) { r.EditReasons = nil },
		"visible to more than group:x or requester now":       func(r *policy.Requirement) { r.VisibleTo = nil },
		`"/iban" is no longer masked`:                         func(r *policy.Requirement) { r.Sensitive = []string{"/iban/x"} },
		"an escalation returns the request to the run":        func(r *policy.Requirement) { r.OnEscalate = requirement.EscalateReturns },
		"user:ann waits for fewer stages":                     func(r *policy.Requirement) { r.Groups[1].Stage = 0 },
		`"/ab" is editable now`:                               func(r *policy.Requirement) { r.Editable = []string{"/ab"} },
	} {
		after := strict()
		change(after)
		got := strings.Join(requirement.Weakenings(strict(), after), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "; ") {
			t.Errorf("got %q, want %q alone", got, want)
		}
	}
	verdicts := []policy.Verdict{policy.Allow, policy.Ask, policy.Deny}
	for i, before := range verdicts {
		for k, after := range verdicts {
			got := policy.Weakenings(policy.Decision{Verdict: before, Requirement: strict()}, policy.Decision{Verdict: after, Requirement: strict()})
			if (len(got) > 0) != (k < i) {
				t.Errorf("%s then %s: %v", before, after, got)
			}
		}
	}
}
