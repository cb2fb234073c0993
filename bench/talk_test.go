package main

import (
	"io"
	"testing"
)

// Each reply leads to the next question, on both sides and databases: measure fails otherwise.
func TestTalk_RepliesLeadToTheNextQuestion(t *testing.T) {
	for _, on := range []string{onSQLite, onPostgres} {
		t.Run(on, func(t *testing.T) {
			r, err := talkQuick.measure(t.Context(), on, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if left := talkQuick.conversations - talkQuick.single; r.Dialog.Replies != left || r.Bare.Replies != left || r.Dialog.P50 == 0 || r.Bare.P50 == 0 || r.Heap == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestJudge_TalkGoal(t *testing.T) {
	const goal = "dialog/sqlite: 10,000 open conversations take at most 8 MiB more than a tenth of them"
	flat := talkResult{Name: "dialog/sqlite", Conversations: 10_000, HeapTenth: mib, Heap: 9 * mib}
	wantVerdicts(t, judgeTalk([]talkResult{flat}, false), map[string]string{goal: "met"})
	flat.Heap++
	wantVerdicts(t, judgeTalk([]talkResult{flat}, false), map[string]string{goal: "**NOT met**"})
	if verdicts := judgeTalk([]talkResult{flat}, true); len(verdicts) != 0 {
		t.Errorf("a quick run is judged: %v", verdicts)
	}
}
