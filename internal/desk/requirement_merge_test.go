package desk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/desk"
)

func TestMerge_NewMembersTakeStrictest(t *testing.T) {
	group := func(name string, stage int) desk.Group {
		return desk.Group{From: []string{"group:" + name}, Count: 1, Stage: stage}
	}
	a := desk.Requirement{
		Groups: []desk.Group{group("x", 0), group("y", 1)}, Deadline: 10, OnTimeout: desk.DefaultOnTimeout, OnEscalate: desk.EscalateReturns,
		EditReasons: []string{"typo"}, VisibleTo: [][]string{{"group:x"}}, Sensitive: []string{"/a"},
	}
	b := desk.Requirement{
		Groups: []desk.Group{group("z", 0), group("x", 1)}, Deadline: 10, OnTimeout: desk.RejectOnTimeout, OnEscalate: desk.EscalateToNextStep,
		EditReasons: []string{"scope"}, VisibleTo: [][]string{{"group:x"}, {"requester"}}, Sensitive: []string{"/b"},
	}
	want := desk.Requirement{
		// x waits for z, and y still waits for x
		Groups: []desk.Group{group("x", 1), group("y", 2), group("z", 0)}, Denials: 1, Deadline: 10, OnTimeout: desk.RejectOnTimeout,
		OnEscalate: desk.EscalateToNextStep, EditReasons: []string{"typo", "scope"}, VisibleTo: [][]string{{"group:x"}, {"requester"}},
		Sensitive: []string{"/a", "/b"},
	}
	got := a.Merge(b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if same := a.Merge(a); same.OnTimeout != desk.DefaultOnTimeout || same.OnEscalate != desk.EscalateReturns {
		t.Errorf("%+v", same)
	}
}

func TestCheck_NewMembers(t *testing.T) {
	for name, change := range map[string]func(*desk.Requirement){
		"stage":          func(q *desk.Requirement) { q.Groups[0].Stage = -1 },
		"on_timeout":     func(q *desk.Requirement) { q.OnTimeout = "allow" },
		"on_escalate":    func(q *desk.Requirement) { q.OnEscalate = "up" },
		"sensitive":      func(q *desk.Requirement) { q.Sensitive = []string{"a"} },
		"anyone sees":    func(q *desk.Requirement) { q.VisibleTo = [][]string{{"anyone"}} },
		"empty audience": func(q *desk.Requirement) { q.VisibleTo = [][]string{{}} },
	} {
		q := desk.OnePerson()
		change(&q)
		if q.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
