package oncall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// prefix is the kind of targets and principals of schedules.
const prefix = "oncall:"

// Members is a directory of groups, as in package desk.
type Members interface {
	Member(who, person string) (bool, error)
}

// Lister is a directory that lists people, as in package desk.
type Lister interface {
	People(ctx context.Context, who string) (people []string, known bool, err error)
}

// Directory adds schedules to a directory of groups. It implements desk.Directory.
type Directory struct {
	// Groups answers for all names that are not schedules; may be nil.
	Groups Members
	// Schedules are the schedules by name: db for oncall:db.
	Schedules map[string]Schedule
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Member reports whether a person is on call, or in a group.
func (d Directory) Member(who, person string) (bool, error) {
	people, known, err := d.OnCall(context.Background(), who)
	switch {
	case err != nil:
		return false, err
	case known:
		return slices.Contains(people, person), nil
	case d.Groups == nil:
		return false, nil
	}
	return d.Groups.Member(who, person)
}

// OnCall returns who is on call in the schedule that a target such as oncall:db names. known is
// false if the target names no schedule.
func (d Directory) OnCall(ctx context.Context, target string) (people []string, known bool, err error) {
	name, ok := strings.CutPrefix(target, prefix)
	schedule := d.Schedules[name]
	if !ok || schedule == nil {
		return nil, false, nil
	}
	now := d.Now
	if now == nil {
		now = time.Now
	}
	people, err = schedule.OnCall(ctx, now())
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", target, err)
	}
	return people, true, nil
}

// People lists the people on call, or of a group if Groups is a [Lister].
func (d Directory) People(ctx context.Context, who string) (people []string, known bool, err error) {
	people, known, err = d.OnCall(ctx, who)
	if groups, ok := d.Groups.(Lister); ok && !known {
		return groups.People(ctx, who)
	}
	return people, known, err
}
