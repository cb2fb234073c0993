package oncall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Schedule says who is on call.
type Schedule interface {
	// OnCall returns the people who are on call at a time, without duplicates. There may be none.
	OnCall(ctx context.Context, at time.Time) ([]string, error)
}

// Rota is a schedule in which people take turns.
type Rota struct {
	// Zone is the time zone of the handover. Defaults to UTC.
	Zone *time.Location
	// Start is the day of the first handover, and its hour and minute are those of each handover,
	// both in Zone.
	Start time.Time
	// Days is the length of a turn. Defaults to 7.
	Days int
	// People take turns in this order. An empty name is a gap in which no one is on call.
	People []string
}

// Validate returns what is wrong with the rota.
func (r Rota) Validate() error {
	switch {
	case len(r.People) == 0:
		return errors.New("oncall: the rota has no people")
	case r.Start.IsZero():
		return errors.New("oncall: the rota has no start")
	case r.Days < 0 || r.Days > 366:
		return fmt.Errorf("oncall: a turn of %d days; use 1 to 366", r.Days)
	}
	return nil
}

// OnCall returns the person whose turn it is.
func (r Rota) OnCall(_ context.Context, at time.Time) ([]string, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	first, now := r.Start.In(zone), at.In(zone)
	days := dayNumber(now) - dayNumber(first)
	// the handover of today is still to come
	if handover := time.Date(now.Year(), now.Month(), now.Day(), first.Hour(), first.Minute(), 0, 0, zone); now.Before(handover) {
		days--
	}
	if days < 0 {
		return nil, nil
	}
	length := max(r.Days, 1)
	if r.Days == 0 {
		length = 7
	}
	if person := r.People[days/length%len(r.People)]; person != "" {
		return []string{person}, nil
	}
	return nil, nil
}

// dayNumber counts calendar days, whatever their length.
func dayNumber(t time.Time) int {
	return int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// unique returns sorted names without duplicates and empty ones.
func unique(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
