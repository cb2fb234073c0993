package desk

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
)

// LatestDeadline returns until when people can extend the deadline; zero if they cannot.
func (r Request) LatestDeadline() time.Time {
	if r.Route.Cap <= 0 {
		return time.Time{}
	}
	last := r.Created.Add(time.Duration(r.Route.Cap))
	if limit := r.Requirement.MaxOpen(); limit > 0 {
		last = earliest(last, r.Created.Add(time.Duration(limit)))
	}
	if !last.After(r.Deadline) {
		return time.Time{}
	}
	return last
}

// NextEscalation returns the step of the route that an escalation fires next; false if there is
// none.
func (r Request) NextEscalation() (Step, bool) {
	d := &update{r: r.clone()}
	next := d.nextEscalation()
	if next < 0 {
		return Step{}, false
	}
	return d.r.Route.Steps[next], true
}

// nextEscalation ends a snooze, and returns the index of the step that an escalation fires; -1 if
// there is none.
func (d *update) nextEscalation() int {
	if !d.r.Snoozed.IsZero() {
		d.endSnooze()
	}
	for i := range d.r.Route.Steps {
		if d.canEscalateTo(i) {
			return i
		}
	}
	return -1
}

// possible returns the verbs of the request that could have an effect in its state.
func (r Request) possible() []requirement.Verb {
	return slices.DeleteFunc(slices.Clone(r.Requirement.Verbs), func(v requirement.Verb) bool {
		switch v {
		case requirement.VerbExtend:
			return r.LatestDeadline().IsZero()
		case requirement.VerbEscalate:
			_, next := r.NextEscalation()
			return !next && r.Requirement.OnEscalate != requirement.EscalateReturns
		}
		return false
	})
}

// Delegates returns the people other than person who can decide the request, sorted. all is false
// if there may be others whom the directory does not list.
func Delegates(ctx context.Context, r Request, person string, directory Directory, lister Lister) (people []string, all bool, err error) {
	all = true
	for _, g := range r.Requirement.Groups {
		for _, who := range g.From {
			kind, name, _ := strings.Cut(who, ":")
			switch {
			case kind == "user":
				people = append(people, name)
			case who == requirement.Requester:
				people = append(people, r.Subject.Requester)
			case who == requirement.Anyone || lister == nil:
				all = false
			default:
				listed, known, err := lister.People(ctx, who)
				if err != nil {
					return nil, false, err
				}
				people, all = append(people, listed...), all && known
			}
		}
	}
	people = slices.DeleteFunc(sets.Union(nil, people), func(p string) bool {
		return p == person || p == "" || checkEligibleFor(r, p, requirement.VerbApprove, directory) != nil
	})
	slices.Sort(people)
	return people, all, nil
}
