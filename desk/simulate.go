package desk

import (
	"fmt"
	"strings"
	"time"
)

// Planned is something that a route would do if nobody did anything.
type Planned struct {
	At time.Time `json:"at"`
	// After is the time since the asking.
	After Duration `json:"after"`
	// Step is the number of the step, from 1; 0 is the deadline of a requirement, which no step of the route has set.
	Step    int      `json:"step"`
	Does    string   `json:"does"`
	Targets []string `json:"targets,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// Simulate says who would be told when of a request that is asked at created and that nobody looks at: at most n entries, the last of
// which is the end. What is sent is taken to arrive at once.
func Simulate(route Route, created time.Time, n int) ([]Planned, error) {
	env := Env{Now: created}
	ask := Ask{ID: "simulated", Asked: Asked{Kind: "simulated", Shown: "-"}, Need: OnePerson(), Route: route}
	change, err := New(ask, env)
	if err != nil {
		return nil, err
	}
	var planned []Planned
	for len(planned) < n {
		for _, notice := range change.Notices {
			if notice.Step > 0 {
				planned = append(planned, plan(created, env.Now, notice.Step, string(notice.Kind), notice.Targets))
			}
		}
		if f := change.Final; f != nil {
			last := plan(created, env.Now, len(route.Steps), "expire", nil)
			last.Reason = f.Reason
			planned = append(planned, last)
			break
		}
		if change, err = arrive(change, env); err != nil {
			return nil, err
		}
		env.Now = change.Next
		if change, err = Apply(change.Request, Tick{}, env); err != nil {
			return nil, err
		}
	}
	return planned[:min(n, len(planned))], nil
}

// arrive reports the first notice as delivered.
func arrive(change Change, env Env) (Change, error) {
	for _, notice := range change.Notices {
		if notice.Step > 0 && len(notice.Targets) > 0 {
			return Apply(change.Request, Delivered{Target: notice.Targets[0], At: env.Now}, env)
		}
	}
	return change, nil
}

func plan(created, at time.Time, step int, does string, targets []string) Planned {
	return Planned{At: at.UTC(), After: Duration(at.Sub(created)), Step: step, Does: does, Targets: targets}
}

// Render writes a plan as text, a line for each entry, with times as they are at a place.
func Render(planned []Planned, where *time.Location) string {
	var text strings.Builder
	for _, p := range planned {
		what := strings.Join(p.Targets, ", ")
		if p.Reason != "" {
			what = p.Reason
		}
		fmt.Fprintf(&text, "%s  +%-8s %-7s %s\n", p.At.In(where).Format("Mon 2006-01-02 15:04 MST"), p.After, p.Does, what)
	}
	return text.String()
}
