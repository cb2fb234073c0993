package requirement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

func TestMerge_NewMembersTakeStrictest(t *testing.T) {
	group := func(name string, stage int) requirement.Group {
		return requirement.Group{From: []string{"group:" + name}, Count: 1, Stage: stage}
	}
	a := requirement.Requirement{
		Groups: []requirement.Group{group("x", 0), group("y", 1)}, Deadline: 10, OnTimeout: requirement.DefaultOnTimeout, OnEscalate: requirement.EscalateReturns,
		EditReasons: []string{"typo"}, RejectReasons: []string{"risk"}, Confirm: []string{"/b"}, VisibleTo: [][]string{{"group:x"}}, Sensitive: []string{"/a"},
	}
	b := requirement.Requirement{
		Groups: []requirement.Group{group("z", 0), group("x", 1)}, Deadline: 10, OnTimeout: requirement.RejectOnTimeout, OnEscalate: requirement.EscalateToNextStep,
		EditReasons: []string{"scope"}, RejectReasons: []string{"risk", "cost"}, Confirm: []string{"/a"}, VisibleTo: [][]string{{"group:x"}, {"requester"}}, Sensitive: []string{"/b"},
	}
	want := requirement.Requirement{
		// x waits for z, and y still waits for x
		Groups: []requirement.Group{group("x", 1), group("y", 2), group("z", 0)}, DenyCount: 1, Deadline: 10, OnTimeout: requirement.RejectOnTimeout,
		OnEscalate: requirement.EscalateToNextStep, EditReasons: []string{"typo", "scope"}, RejectReasons: []string{"risk", "cost"}, Confirm: []string{"/a", "/b"}, VisibleTo: [][]string{{"group:x"}, {"requester"}},
		Sensitive: []string{"/a", "/b"},
	}
	got := a.Merge(b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if same := a.Merge(a); same.OnTimeout != requirement.DefaultOnTimeout || same.OnEscalate != requirement.EscalateReturns {
		t.Errorf("%+v", same)
	}
}

// An undo window of another rule does not replace the typed confirmation.
func TestMerge_TypedConfirmationStaysBesideAnUndoWindow(t *testing.T) {
	typed, undo := requirement.OnePerson(), requirement.OnePerson()
	typed.Confirm, undo.Undo = []string{"/table"}, timespan.Duration(time.Minute)
	if both := typed.Merge(undo); !both.IsTyped() || both.Undo != undo.Undo {
		t.Errorf("%+v", both)
	}
	if got := requirement.Weakenings(&typed, &undo); len(got) != 1 {
		t.Errorf("undo instead of confirm: %v", got)
	}
}

func TestCheck_NewMembers(t *testing.T) {
	for name, change := range map[string]func(*requirement.Requirement){
		"stage":          func(q *requirement.Requirement) { q.Groups[0].Stage = -1 },
		"on_timeout":     func(q *requirement.Requirement) { q.OnTimeout = "allow" },
		"on_escalate":    func(q *requirement.Requirement) { q.OnEscalate = "up" },
		"confirm":        func(q *requirement.Requirement) { q.Confirm = []string{"a"} },
		"sensitive":      func(q *requirement.Requirement) { q.Sensitive = []string{"a"} },
		"anyone sees":    func(q *requirement.Requirement) { q.VisibleTo = [][]string{{"anyone"}} },
		"empty audience": func(q *requirement.Requirement) { q.VisibleTo = [][]string{{}} },
	} {
		q := requirement.OnePerson()
		change(&q)
		if q.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
