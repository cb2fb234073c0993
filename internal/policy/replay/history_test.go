package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

// ruling is a ruling by the old rules, at an hour.
func ruling(t *testing.T, key string, stage replay.Stage, args string, hour int) replay.RecordedRuling {
	t.Helper()
	in := recorded("refund", args, hour)
	in.Run = "run-" + key
	d, err := load(t, before).Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	r := replay.NewRecordedRuling(in, d)
	r.Key, r.Stage = key, stage
	return r
}

func rulingSeq(rulings ...replay.RecordedRuling) iter.Seq2[replay.RecordedRuling, error] {
	return func(yield func(replay.RecordedRuling, error) bool) {
		for _, r := range rulings {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func compareHistory(t *testing.T, doc string, scope replay.HistoryOptions, rulings ...replay.RecordedRuling) replay.HistoryReport {
	t.Helper()
	past, err := replay.CompareHistory(t.Context(), load(t, doc), rulingSeq(rulings...), scope)
	if err != nil {
		t.Fatal(err)
	}
	return past
}

func TestCompareHistory_SeparatesStricterFromLooser(t *testing.T) {
	rulings := []replay.RecordedRuling{
		ruling(t, "a", replay.StageAllowed, `{"cents":500,"staff":false}`, 8),
		ruling(t, "b", replay.StageAsked, `{"cents":5000,"staff":false}`, 9),
		ruling(t, "b2", replay.StageApproved, `{"cents":5000,"staff":false}`, 10),
		ruling(t, "c", replay.StageDenied, `{"cents":500,"staff":true}`, 11),
	}
	if past := compareHistory(t, before, replay.HistoryOptions{}, rulings...); past.Rulings != 3 || past.Unchanged != 3 || past.Weakens() {
		t.Errorf("the same rules: %+v", past)
	}
	one := compareHistory(t, strings.Replace(before, "count: 2", "count: 1", 1), replay.HistoryOptions{}, rulings...)
	if one.Looser != 1 || one.Unchanged != 2 || one.Examples[0].Run != "run-b" || !strings.Contains(one.Examples[0].Weakenings[0], "down from 2 to 1") {
		t.Errorf("one person fewer: %+v", one)
	}
	three := compareHistory(t, strings.Replace(before, "count: 2", "count: 3", 1), replay.HistoryOptions{}, rulings...)
	if three.Stricter != 1 || three.Looser != 0 || len(three.Examples) != 1 {
		t.Errorf("one person more: %+v", three)
	}
	both := compareHistory(t, strings.Replace(before, "count: 2}], deadline: 1h", "count: 1}], deadline: 30m", 1), replay.HistoryOptions{}, rulings...)
	if both.Looser != 1 || both.Stricter != 0 {
		t.Errorf("both: %+v", both)
	}
}

// A ruling that was recorded twice, because a process died after the first, counts once and is
// charged once.
func TestCompareHistory_CountsEachKeyOnce(t *testing.T) {
	twice := ruling(t, "a", replay.StageAllowed, `{"cents":500,"staff":false}`, 8)
	later := ruling(t, "b", replay.StageAllowed, `{"cents":500,"staff":false}`, 9)
	limited := before + "- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 1000, window: 24h}}\n"
	if past := compareHistory(t, limited, replay.HistoryOptions{}, twice, twice, later); past.Rulings != 2 || past.Unchanged != 2 {
		t.Errorf("%+v", past)
	}
}

// Rulings before Since are not compared but count for limits.
func TestCompareHistory_CountsEarlierRulings(t *testing.T) {
	early, late := ruling(t, "a", replay.StageAllowed, `{"cents":500,"staff":false}`, 8), ruling(t, "b", replay.StageAllowed, `{"cents":500,"staff":false}`, 10)
	limited := func(window string) string {
		return before + "- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 999, window: " + window + "}}\n"
	}
	scope := replay.HistoryOptions{Since: late.Input.At}
	if past := compareHistory(t, limited("2h"), scope, early, late); past.Rulings != 1 || past.Stricter != 1 {
		t.Errorf("within the window: %+v", past)
	}
	if past := compareHistory(t, limited("119m"), scope, early, late); past.Rulings != 1 || past.Unchanged != 1 {
		t.Errorf("out of the window: %+v", past)
	}
	if past := compareHistory(t, limited("2h"), scope, ruling(t, "a", replay.StageAsked, `{"cents":5000,"staff":false}`, 8), late); past.Unchanged != 1 {
		t.Errorf("an action that was not executed is counted: %+v", past)
	}
}

// A recorded counter is valid for the rule it was recorded for. It is not valid for a changed rule
// with the same id.
func TestCompareHistory_UsesRecordedCounterOfSameRule(t *testing.T) {
	const limited = "default: allow\nrules:\n- {id: day, when: 'true', then: deny, limit: {amount: args.cents, max: 1000, window: 24h}}\n"
	set := load(t, limited)
	in := recorded("refund", `{"cents":500}`, 8)
	in.History = map[string]int64{set.CounterQueries(in)[0].Key(): 501}
	d, err := set.Decide(in)
	if err != nil || d.Verdict != policy.Deny {
		t.Fatalf("%+v, %v", d, err)
	}
	r := replay.NewRecordedRuling(in, d)
	r.Key, r.Stage = "a", replay.StageDenied
	if past := compareHistory(t, limited, replay.HistoryOptions{}, r); past.Unchanged != 1 {
		t.Errorf("the same rule: %+v", past)
	}
	if past := compareHistory(t, strings.Replace(limited, "args.cents, max: 1000", "1, max: 500", 1), replay.HistoryOptions{}, r); past.Looser != 1 {
		t.Errorf("a rule that counts something else: %+v", past)
	}
}

func TestCompareHistory_ReportsTruncation(t *testing.T) {
	rulings := []replay.RecordedRuling{ruling(t, "a", replay.StageAllowed, `{"cents":5,"staff":false}`, 8), ruling(t, "b", replay.StageAllowed, `{"cents":5,"staff":false}`, 9)}
	past := compareHistory(t, before, replay.HistoryOptions{MaxRulings: 1}, rulings...)
	if !past.Truncated || past.Rulings != 1 || past.Last == nil || !past.Last.Equal(rulings[0].Input.At) {
		t.Errorf("%+v", past)
	}
	if past := compareHistory(t, before, replay.HistoryOptions{MaxRulings: 2}, rulings...); past.Truncated || past.Rulings != 2 {
		t.Errorf("nothing was left out: %+v", past)
	}
	var text strings.Builder
	if err := past.Print(&text); err != nil || !strings.Contains(text.String(), "TRUNCATED: rulings after 2026-11-16 08:00") {
		t.Errorf("%s, %v", text.String(), err)
	}
}

func TestCompareHistory_StopsAtFirstError(t *testing.T) {
	_, err := replay.CompareHistory(t.Context(), load(t, before), func(yield func(replay.RecordedRuling, error) bool) { yield(replay.RecordedRuling{}, errRead) }, replay.HistoryOptions{})
	if !errors.Is(err, errRead) {
		t.Error(err)
	}
}

// The report contains no arguments, and its lists are not null if empty.
func TestCompareHistory_ShowsNoArguments(t *testing.T) {
	r := ruling(t, "a", replay.StageDenied, `{"cents":77731,"staff":true}`, 8)
	past := compareHistory(t, "default: allow\n", replay.HistoryOptions{Since: time.Time{}}, r)
	data, err := json.Marshal(past)
	var text strings.Builder
	if err := errors.Join(err, past.Print(&text)); err != nil || strings.Contains(string(data)+text.String(), "77731") {
		t.Errorf("%s\n%s, %v", data, text.String(), err)
	}
	if !strings.Contains(text.String(), "deny  allow 1") || !strings.Contains(text.String(), "in run-a: deny (staff) becomes allow (default)\n    WEAKER: deny becomes allow") {
		t.Error(text.String())
	}
	if data, _ := json.Marshal(compareHistory(t, before, replay.HistoryOptions{})); strings.Contains(string(data), "null") {
		t.Errorf("%s", data)
	}
}

// The context is checked between rulings and inside them.
func TestCompareHistory_StopsAtTheDeadline(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	compared := 0
	rulings := func(yield func(replay.RecordedRuling, error) bool) {
		for {
			if compared++; compared == 3 {
				end()
			}
			if compared > 10 || !yield(replay.RecordedRuling{Key: strconv.Itoa(compared), Stage: replay.StageAsked, Input: policy.Input{Tool: "t"}}, nil) {
				return
			}
		}
	}
	_, err := replay.CompareHistory(ctx, load(t, "default: allow\nrules:\n- {id: a, when: 'req.tool == \"t\"', then: deny}\n"), rulings, replay.HistoryOptions{})
	if !errors.Is(err, context.Canceled) || compared != 3 {
		t.Errorf("%v after %d rulings", err, compared)
	}
}
