package modelcheck_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/modelcheck"
)

// ladder counts up to 5 by one or, with a fault, by two. It stops at trap.
func ladder(trap int, broken func(int) []string) modelcheck.Model[int, int] {
	return modelcheck.Model[int, int]{
		Key:      func(n int) int { return n },
		Violated: broken,
		Steps: func(n int) []modelcheck.Step[int] {
			if n >= 5 || n == trap {
				return nil
			}
			return []modelcheck.Step[int]{
				{Name: fmt.Sprintf("%d and one", n), To: n + 1},
				{Name: fmt.Sprintf("%d and two", n), To: n + 2, Fault: true},
			}
		},
		Settled: func(n int) bool { return n >= 5 },
		Limit:   100,
	}
}

func fine(int) []string { return nil }

func run(t *testing.T, model modelcheck.Model[int, int]) modelcheck.Result {
	t.Helper()
	result, err := modelcheck.Run(model)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRun_VisitsEachStateOnce(t *testing.T) {
	result := run(t, ladder(-1, fine))
	// 0 to 5, and 6 from 4 by two
	if result.States != 7 || result.Stuck != 0 || len(result.Violations) != 0 {
		t.Errorf("%+v, want 7 states without violations", result)
	}
}

func TestRun_FindsTheShortestPath(t *testing.T) {
	result := run(t, ladder(-1, func(n int) []string {
		if n == 4 {
			return []string{"four"}
		}
		return nil
	}))
	want := modelcheck.Path{{Name: "0 and two", Fault: true}, {Name: "2 and two", Fault: true}}
	if got := result.Violations["four"]; !slices.Equal(got, want) || got.Faults() != 2 {
		t.Errorf("the path to four is\n%s(%d faults), want\n%s", got, got.Faults(), want)
	}
}

func TestRun_StopsAtFirstViolationUnlessCollectAll(t *testing.T) {
	model := ladder(-1, func(n int) []string { return []string{fmt.Sprintf("not %d", n)}[:min(n, 1)] })
	if found := run(t, model).Violations; len(found) != 1 || found["not 1"] == nil {
		t.Errorf("found %v, want only the nearest", found)
	}
	model.CollectAll = true
	if found := run(t, model).Violations; len(found) != 6 || len(found["not 6"]) != 3 {
		t.Errorf("found %v, want one for each number from 1 to 6", found)
	}
}

func TestRun_ReportsViolationInTheFirstState(t *testing.T) {
	result := run(t, ladder(-1, func(int) []string { return []string{"at once"} }))
	if path := result.Violations["at once"]; path == nil || len(path) != 0 {
		t.Errorf("violations: %v, want one without any step", result.Violations)
	}
}

func TestRun_SettlesWithoutFaults(t *testing.T) {
	// from 0, 1 and 2 only a fault leads past 3
	if result := run(t, ladder(3, fine)); result.Stuck != 4 || len(result.StuckAt) != 0 {
		t.Errorf("%d states are stuck, the first after\n%swant 4, and the first state", result.Stuck, result.StuckAt)
	}
	model := ladder(3, fine)
	model.Start = 4
	if result := run(t, model); result.Stuck != 0 {
		t.Errorf("%d states are stuck, want none beyond the trap", result.Stuck)
	}
	model.Settled = nil
	model.Start = 0
	if result := run(t, model); result.Stuck != 0 {
		t.Errorf("%d states are stuck where nothing has to settle", result.Stuck)
	}
}

func TestRun_LimitReturnsErrLimit(t *testing.T) {
	model := ladder(-1, fine)
	model.Limit = 3
	if _, err := modelcheck.Run(model); !errors.Is(err, modelcheck.ErrLimit) {
		t.Errorf("error %v, want ErrLimit", err)
	}
}

func TestPath_IsReadable(t *testing.T) {
	path := modelcheck.Path{{Name: "ann clicks"}, {Name: "the power fails", Fault: true}}
	if got, want := path.String(), "  1. ann clicks\n  2. the power fails\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
