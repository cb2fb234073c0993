package replay_test

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
)

// ruled is a ruling that was made by the rules of before, at an hour.
func ruled(t *testing.T, key string, stage replay.Stage, args string, hour int) replay.Ruled {
	t.Helper()
	in := recorded("refund", args, hour)
	in.Run = "run-" + key
	d, err := load(t, before).Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	r := replay.RuledOf(in, d)
	r.Key, r.Stage = key, stage
	return r
}

func kept(rulings ...replay.Ruled) iter.Seq2[replay.Ruled, error] {
	return func(yield func(replay.Ruled, error) bool) {
		for _, r := range rulings {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func against(t *testing.T, doc string, scope replay.Scope, rulings ...replay.Ruled) replay.Past {
	t.Helper()
	past, err := replay.Against(load(t, doc), kept(rulings...), scope)
	if err != nil {
		t.Fatal(err)
	}
	return past
}

func TestAgainst_TellsStricterFromLooser(t *testing.T) {
	rulings := []replay.Ruled{
		ruled(t, "a", replay.Allowed, `{"cents":500,"staff":false}`, 8),
		ruled(t, "b", replay.Asked, `{"cents":5000,"staff":false}`, 9),
		ruled(t, "b2", replay.Approved, `{"cents":5000,"staff":false}`, 10),
		ruled(t, "c", replay.Denied, `{"cents":500,"staff":true}`, 11),
	}
	if past := against(t, before, replay.Scope{}, rulings...); past.Rulings != 3 || past.Unchanged != 3 || past.Weakens() {
		t.Errorf("the same rules: %+v", past)
	}
	one := against(t, strings.Replace(before, "count: 2", "count: 1", 1), replay.Scope{}, rulings...)
	if one.Looser != 1 || one.Unchanged != 2 || one.Examples[0].Run != "run-b" || !strings.Contains(one.Examples[0].Weaker[0], "down from 2 to 1") {
		t.Errorf("one person less: %+v", one)
	}
	three := against(t, strings.Replace(before, "count: 2", "count: 3", 1), replay.Scope{}, rulings...)
	if three.Stricter != 1 || three.Looser != 0 || len(three.Examples) != 1 {
		t.Errorf("one person more: %+v", three)
	}
	both := against(t, strings.Replace(before, "count: 2}], deadline: 1h", "count: 1}], deadline: 30m", 1), replay.Scope{}, rulings...)
	if both.Looser != 1 || both.Stricter != 0 {
		t.Errorf("both: %+v", both)
	}
}

// A ruling that was made twice, as somebody died after the first, counts once; and once it is charged.
func TestAgainst_TakesARulingOnce(t *testing.T) {
	twice := ruled(t, "a", replay.Allowed, `{"cents":500,"staff":false}`, 8)
	later := ruled(t, "b", replay.Allowed, `{"cents":500,"staff":false}`, 9)
	limited := before + "- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 1000, window: 24h}}\n"
	if past := against(t, limited, replay.Scope{}, twice, twice, later); past.Rulings != 2 || past.Unchanged != 2 {
		t.Errorf("%+v", past)
	}
}

// What was before the span is not compared, and counted: a limit looks back beyond it.
func TestAgainst_CountsWhatWasBefore(t *testing.T) {
	early, late := ruled(t, "a", replay.Allowed, `{"cents":500,"staff":false}`, 8), ruled(t, "b", replay.Allowed, `{"cents":500,"staff":false}`, 10)
	limited := func(window string) string {
		return before + "- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 999, window: " + window + "}}\n"
	}
	scope := replay.Scope{Since: late.Input.At}
	if past := against(t, limited("2h"), scope, early, late); past.Rulings != 1 || past.Stricter != 1 {
		t.Errorf("within the window: %+v", past)
	}
	if past := against(t, limited("119m"), scope, early, late); past.Rulings != 1 || past.Unchanged != 1 {
		t.Errorf("out of the window: %+v", past)
	}
	if past := against(t, limited("2h"), scope, ruled(t, "a", replay.Asked, `{"cents":5000,"staff":false}`, 8), late); past.Unchanged != 1 {
		t.Errorf("what never went ahead is counted: %+v", past)
	}
}

// The recorded number is the right one for the rule that it was recorded for. For another rule of that name it says nothing.
func TestAgainst_TakesTheRecordedNumberOfTheSameRule(t *testing.T) {
	const limited = "default: allow\nrules:\n- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 1000, window: 24h}}\n"
	set := load(t, limited)
	in := recorded("refund", `{"cents":500}`, 8)
	in.History = map[string]int64{set.Demands(in)[0].Key(): 501}
	d, err := set.Decide(in)
	if err != nil || d.Verdict != policy.Deny {
		t.Fatalf("%+v, %v", d, err)
	}
	r := replay.RuledOf(in, d)
	r.Key, r.Stage = "a", replay.Denied
	if past := against(t, limited, replay.Scope{}, r); past.Unchanged != 1 {
		t.Errorf("the same rule: %+v", past)
	}
	if past := against(t, strings.Replace(limited, "args.cents, max: 1000", "1, max: 500", 1), replay.Scope{}, r); past.Looser != 1 {
		t.Errorf("a rule that counts something else: %+v", past)
	}
}

func TestAgainst_SaysWhereItStopped(t *testing.T) {
	rulings := []replay.Ruled{ruled(t, "a", replay.Allowed, `{"cents":5,"staff":false}`, 8), ruled(t, "b", replay.Allowed, `{"cents":5,"staff":false}`, 9)}
	past := against(t, before, replay.Scope{Most: 1}, rulings...)
	if !past.CutOff || past.Rulings != 1 || past.Last == nil || !past.Last.Equal(rulings[0].Input.At) {
		t.Errorf("%+v", past)
	}
	if past := against(t, before, replay.Scope{Most: 2}, rulings...); past.CutOff || past.Rulings != 2 {
		t.Errorf("nothing was left out: %+v", past)
	}
	var text strings.Builder
	if err := past.Print(&text); err != nil || !strings.Contains(text.String(), "CUT OFF: those after 2026-11-16 08:00") {
		t.Errorf("%s, %v", text.String(), err)
	}
}

func TestAgainst_EndsWithTheFirstError(t *testing.T) {
	_, err := replay.Against(load(t, before), func(yield func(replay.Ruled, error) bool) { yield(replay.Ruled{}, errRead) }, replay.Scope{})
	if !errors.Is(err, errRead) {
		t.Error(err)
	}
}

// What is told holds no arguments, and an empty past has lists for programs.
func TestAgainst_TellsNoArguments(t *testing.T) {
	r := ruled(t, "a", replay.Denied, `{"cents":77731,"staff":true}`, 8)
	past := against(t, "default: allow\n", replay.Scope{Since: time.Time{}}, r)
	data, err := json.Marshal(past)
	var text strings.Builder
	if err := errors.Join(err, past.Print(&text)); err != nil || strings.Contains(string(data)+text.String(), "77731") {
		t.Errorf("%s\n%s, %v", data, text.String(), err)
	}
	if !strings.Contains(text.String(), "deny  allow 1") || !strings.Contains(text.String(), "in run-a: deny (staff) becomes allow (default)\n    WEAKER: deny becomes allow") {
		t.Error(text.String())
	}
	if data, _ := json.Marshal(against(t, before, replay.Scope{})); strings.Contains(string(data), "null") {
		t.Errorf("%s", data)
	}
}
