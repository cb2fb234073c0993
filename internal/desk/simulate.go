package desk

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// PlannedStep is a step that a route would take without any action by people.
type PlannedStep struct {
	At time.Time `json:"at"`
	// After is the time since the creation.
	After timespan.Duration `json:"after"`
	// Step is the number of the step, from 1. 0 is the deadline of a requirement, which is not part
	// of the route.
	Step    int      `json:"step"`
	Action  string   `json:"does"`
	Targets []string `json:"targets,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// Simulate returns who would be notified when, for a request created at created that no one acts
// on. It returns at most n entries; the last one is the expiry. It assumes that notices are
// delivered at once.
func Simulate(route Route, created time.Time, n int) ([]PlannedStep, error) {
	env := Env{Now: created}
	ask := RequestSpec{ID: "simulated", Subject: Subject{Kind: "simulated", ShownDigest: "-"}, Requirement: requirement.OnePerson(), Route: route}
	change, err := New(ask, env)
	if err != nil {
		return nil, err
	}
	var planned []PlannedStep
	for len(planned) < n {
		for _, notice := range change.Notices {
			if notice.Step > 0 {
				planned = append(planned, newPlannedStep(created, env.Now, notice.Step, string(notice.Kind), notice.Targets))
			}
		}
		if f := change.Decision; f != nil {
			last := newPlannedStep(created, env.Now, len(route.Steps), "expire", nil)
			last.Reason = f.Reason
			planned = append(planned, last)
			break
		}
		if change, err = deliverFirst(change, env); err != nil {
			return nil, err
		}
		env.Now = change.NextDue
		if change, err = Apply(change.Request, Tick{}, env); err != nil {
			return nil, err
		}
	}
	return planned[:min(n, len(planned))], nil
}

// deliverFirst records the first notice as delivered.
func deliverFirst(change Change, env Env) (Change, error) {
	for _, notice := range change.Notices {
		if notice.Step > 0 && len(notice.Targets) > 0 {
			return Apply(change.Request, RecordDelivery{Target: notice.Targets[0], At: env.Now}, env)
		}
	}
	return change, nil
}

func newPlannedStep(created, at time.Time, step int, does string, targets []string) PlannedStep {
	return PlannedStep{At: at.UTC(), After: timespan.Duration(at.Sub(created)), Step: step, Action: does, Targets: targets}
}

// FormatPlan formats a plan, one line per entry, with times in the given location.
func FormatPlan(planned []PlannedStep, where *time.Location) string {
	var text strings.Builder
	for _, p := range planned {
		what := strings.Join(p.Targets, ", ")
		if p.Reason != "" {
			what = p.Reason
		}
		fmt.Fprintf(&text, "%s  +%-8s %-7s %s\n", p.At.In(where).Format("Mon 2006-01-02 15:04 MST"), p.After, p.Action, what)
	}
	return text.String()
}
