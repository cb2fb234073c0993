package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

const before = `
default: ask
defaults: {ask: {groups: [{from: ["group:oncall"], count: 2}], deadline: 1h}}
rules:
- {id: small, when: 'req.tool == "refund" && args.cents <= 1000', then: allow}
- {id: staff, when: 'req.tool == "refund" && args.staff == true', then: deny}
- {id: night, when: 'local.hour < 6', then: ask, ask: {min_auth: sso}}
`

func load(t testing.TB, doc string) *policy.Set {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(doc), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func recorded(tool, args string, hour int) policy.Input {
	return policy.Input{Account: "acme", Tool: tool, Args: json.RawMessage(args), At: time.Date(2026, 11, 16, hour, 0, 0, 0, time.UTC)}
}

var inputs = []policy.Input{
	recorded("refund", `{"cents":500,"staff":false}`, 10),
	recorded("refund", `{"cents":5000,"staff":false}`, 10),
	recorded("refund", `{"cents":500,"staff":true}`, 10),
	recorded("mail", `{}`, 3),
	recorded("mail", `{}`, 12),
	recorded("mail", `{`, 12),
}

func all(inputs ...policy.Input) iter.Seq2[policy.Input, error] {
	return func(yield func(policy.Input, error) bool) {
		for _, in := range inputs {
			if !yield(in, nil) {
				return
			}
		}
	}
}

var errRead = errors.New("the recording cannot be read")

func broken(inputs ...policy.Input) iter.Seq2[policy.Input, error] {
	return func(yield func(policy.Input, error) bool) {
		for _, in := range inputs {
			if !yield(in, nil) {
				return
			}
		}
		yield(policy.Input{}, errRead)
	}
}

func TestSummarize(t *testing.T) {
	s, err := replay.Summarize(load(t, before), all(inputs...))
	if err != nil {
		t.Fatal(err)
	}
	want := "{6 map[allow:1 ask:3 deny:1] map[default:2 night:1 small:1 staff:1] 0 0 1}"
	if got := fmt.Sprint(s); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := replay.Summarize(load(t, before), broken()); !errors.Is(err, errRead) {
		t.Error(err)
	}
}

func TestDiff_NothingChanges(t *testing.T) {
	report, err := replay.Diff(load(t, before), load(t, before+"\n# only a comment\n"), all(inputs...))
	if err != nil || len(report.Differences) != 0 || len(report.Rules) != 0 || report.Weakens() || report.Inputs != 6 || report.InvalidInputs != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestDiff_RatingsInAnotherOrderAreTheSame(t *testing.T) {
	one, other := "tools: {t: {risk: 3}, u: {effects: []}}\n"+before, "tools: {u: {effects: []}, t: {risk: 3}}\n"+before
	if changes := replay.Changes(load(t, one), load(t, other)); len(changes) != 0 {
		t.Errorf("%+v", changes)
	}
}

func TestDiff_ListsWhatWouldChange(t *testing.T) {
	after := strings.NewReplacer("cents <= 1000", "cents <= 9000", "count: 2", "count: 1", "- {id: staff", "- {id: no-mail, when: 'req.tool == \"mail\" && local.hour > 6', then: deny}\n- {id: staff").Replace(before)
	report, err := replay.Diff(load(t, before), load(t, after), all(inputs...))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	want := `small has changed
    WEAKER: the condition has changed; it may match less often or allow more
no-mail is new: deny
night has changed
    WEAKER: count of group:oncall down from 2 to 1
default has changed: ask, then ask
    WEAKER: count of group:oncall down from 2 to 1
6 inputs, 3 decided differently
  acme refund at 2026-11-16 10:00: ask (default) becomes allow (small)
    WEAKER: ask becomes allow
  acme mail at 2026-11-16 03:00: still ask, with another requirement (night, then night)
    WEAKER: count of group:oncall down from 2 to 1
  acme mail at 2026-11-16 12:00: ask (default) becomes deny (no-mail)
1 inputs were invalid
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &text, want)
	}
	if !report.Weakens() {
		t.Error("a stricter set weakens")
	}
	back, err := replay.Diff(load(t, after), load(t, before), all(inputs[1], inputs[3]))
	if err != nil || len(back.Differences) != 2 || len(back.Differences[0].Weakenings)+len(back.Differences[1].Weakenings) != 0 {
		t.Errorf("back to the stricter set: %+v, %v", back, err)
	}
}

func TestChanges_FlagsWeakenings(t *testing.T) {
	const head = "default: deny\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}\nrules:\n- {id: base, when: 'false', then: deny}\n"
	rule := func(text string) string { return head + "- {id: a, " + text + "}\n" }
	for name, c := range map[string]struct{ before, after, want string }{
		"allow added":               {head, rule("when: 'true', then: allow"), "allow added"},
		"deny added":                {head, rule("when: 'true', then: deny"), ""},
		"ask added":                 {head, rule("when: 'true', then: ask"), ""},
		"allow as dry run":          {head, rule("when: 'true', then: allow, mode: dry_run"), ""},
		"deny removed":              {rule("when: 'true', then: deny"), head, "deny removed"},
		"ask removed":               {rule("when: 'true', then: ask"), head, "ask removed"},
		"allow removed":             {rule("when: 'true', then: allow"), head, ""},
		"dry run removed":           {rule("when: 'true', then: deny, mode: dry_run"), head, ""},
		"milder":                    {rule("when: 'true', then: deny"), rule("when: 'true', then: ask"), "deny becomes ask"},
		"stricter":                  {rule("when: 'true', then: ask"), rule("when: 'true', then: deny"), ""},
		"becomes a dry run":         {rule("when: 'true', then: deny"), rule("when: 'true', then: deny, mode: dry_run"), "deny is only a dry run now"},
		"deny no longer a dry run":  {rule("when: 'true', then: deny, mode: dry_run"), rule("when: 'true', then: deny"), ""},
		"allow no longer a dry run": {rule("when: 'true', then: allow, mode: dry_run"), rule("when: 'true', then: allow"), "allow added"},
		"condition":                 {rule("when: 'true', then: deny"), rule("when: 'req.risk > 1', then: deny"), "the condition has changed"},
		"deadline up":               {rule("when: 'true', then: ask"), rule("when: 'true', then: ask, ask: {deadline: 2h}"), "deadline up from 1h to 2h"},
		"deadline down":             {rule("when: 'true', then: ask"), rule("when: 'true', then: ask, ask: {deadline: 30m}"), ""},
		"other risk":                {"tools: {t: {risk: 3}}\n" + head, "tools: {t: {risk: 1}}\n" + head, "match less often or allow more"},
		"risk removed":              {"tools: {t: {risk: 3, cost: 1}}\n" + head, "tools: {t: {cost: 1}}\n" + head, "match less often or allow more"},
		"other effects":             {"tools: {t: {effects: [write]}}\n" + head, "tools: {t: {effects: []}}\n" + head, "match less often or allow more"},
		"a tool is rated":           {head, "tools: {'*': {risk: 0}}\n" + head, "match less often or allow more"},
		"rating removed":            {"tools: {t: {risk: 3}}\n" + head, head, "match less often or allow more"},
		"reason":                    {rule("when: 'true', then: deny"), rule("when: 'true', then: deny, reason: because"), ""},
		"limit up":                  {rule("when: 'true', then: deny, limit: {max: 1, window: 1h}"), rule("when: 'true', then: deny, limit: {max: 2, window: 1h}"), "limit up from 1 to 2"},
		"limit down":                {rule("when: 'true', then: deny, limit: {max: 2, window: 1h}"), rule("when: 'true', then: deny, limit: {max: 1, window: 2h}"), ""},
		"window down":               {rule("when: 'true', then: deny, limit: {max: 1, window: 2h}"), rule("when: 'true', then: deny, limit: {max: 1, window: 1h}"), "window down from 2h to 1h"},
		"counts something else":     {rule("when: 'true', then: deny, limit: {max: 1, window: 2h}"), rule("when: 'true', then: deny, limit: {max: 1, window: 2h, by: [run]}"), "the limit counts something else"},
		"deny gets a limit":         {rule("when: 'true', then: deny"), rule("when: 'true', then: deny, limit: {max: 1, window: 2h}"), "it applies only above a limit now"},
		"deny loses its limit":      {rule("when: 'true', then: deny, limit: {max: 1, window: 2h}"), rule("when: 'true', then: deny"), ""},
		"allow loses its limit":     {rule("when: 'true', then: allow, limit: {max: 1, window: 2h}"), rule("when: 'true', then: allow"), "the allow has no limit any more"},
		"allow gets a limit":        {rule("when: 'true', then: allow"), rule("when: 'true', then: allow, limit: {max: 1, window: 2h}"), ""},
		"default":                   {head, strings.Replace(head, "default: deny", "default: ask", 1), "deny becomes ask"},
		"default, stricter":         {strings.Replace(head, "default: deny", "default: allow", 1), head, ""},
	} {
		changes := replay.Changes(load(t, c.before), load(t, c.after))
		if len(changes) != 1 {
			t.Errorf("%s: %+v", name, changes)
			continue
		}
		got := strings.Join(changes[0].Weakenings, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDiff_ReportsMissingCounters(t *testing.T) {
	after := before + "- {id: often, when: 'history.count(\"tool\", \"1h\") > 3', then: deny}\n"
	report, err := replay.Diff(load(t, before), load(t, after), all(inputs[0]))
	if err != nil || report.RuleErrors != 1 || len(report.Differences) != 1 || report.Differences[0].After.Verdict != policy.Deny {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := replay.Diff(load(t, before), load(t, after), broken()); !errors.Is(err, errRead) {
		t.Error(err)
	}
}

// A rule that asks replaces a default that denies. The rule alone does not show it; the inputs do.
func TestDiff_WeakensByInputsAlone(t *testing.T) {
	const closed = "default: deny\n"
	open := closed + "rules:\n- {id: ask, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h}}\n"
	for name, c := range map[string]struct {
		inputs iter.Seq2[policy.Input, error]
		want   bool
	}{"none": {all(), false}, "one": {all(inputs[4]), true}} {
		report, err := replay.Diff(load(t, closed), load(t, open), c.inputs)
		if err != nil || report.Weakens() != c.want {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}
