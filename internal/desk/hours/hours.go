// Package hours computes working hours: shifts in local time, holidays, and which of several
// regions is open ("follow the sun").
//
//	zurich := hours.Region{Name: "emea", Zone: "Europe/Zurich", Windows: []hours.Window{
//		{Days: hours.Weekdays(), From: hours.At(9, 0), To: hours.At(18, 0)},
//	}}
//	region, when, err := hours.PickRegion([]hours.Region{zurich, singapore}, now, 30*time.Minute)
//
// A shift that does not end after it begins crosses midnight and belongs to the day on which it
// begins. Local times that a clock change skips are moved forward by the gap. Of times that occur
// twice, the first is used.
package hours

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // containers often have no zone files
)

// ErrNeverOpen reports that no region opens within the next 400 days.
var ErrNeverOpen = errors.New("never opens")

const horizonDays = 400 // maximum search range

// Region is a region with its working hours.
type Region struct {
	Name string `json:"name" yaml:"name"`
	// Zone is the IANA name of the time zone.
	Zone     string   `json:"zone" yaml:"zone"`
	Windows  []Window `json:"hours" yaml:"hours"`
	Holidays []Date   `json:"holidays,omitempty" yaml:"holidays,omitempty"`
	// Channel is the channel of the people in the region.
	Channel string `json:"channel,omitempty" yaml:"channel,omitempty"`
}

// Window is a shift and the days on which it begins.
type Window struct {
	Days []Day     `json:"days" yaml:"days"`
	From TimeOfDay `json:"from" yaml:"from"`
	To   TimeOfDay `json:"to" yaml:"to"`
}

// zones caches locations, because loading zone files is slow.
var zones sync.Map // name → *time.Location

func zone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("invalid time zone %q: use an IANA name such as Europe/Zurich", name)
	}
	loaded, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, loaded)
	return loaded, nil
}

// Check returns all errors of the region.
func (r Region) Check() []error {
	var errs []error
	if r.Name == "" {
		errs = append(errs, errors.New("region name is missing"))
	}
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("region %q: "+format, append([]any{r.Name}, args...)...))
	}
	if _, err := zone(r.Zone); err != nil {
		bad("%w", err)
	}
	open := false
	for i, w := range r.Windows {
		switch {
		case len(w.Days) == 0:
			bad("hours %d have no days", i+1)
		case w.From < 0 || w.From >= At(24, 0) || w.To < 0 || w.To > At(24, 0):
			bad("hours %d: %s to %s is not a valid time range", i+1, w.From, w.To)
		default:
			open = true
		}
		if slices.ContainsFunc(w.Days, func(d Day) bool { return d < 0 || d > 6 }) {
			bad("hours %d: invalid day of the week", i+1)
		}
	}
	for _, date := range r.Holidays {
		if err := date.check(); err != nil {
			bad("%w", err)
		}
	}
	if !open {
		bad("%w", ErrNeverOpen)
	}
	return errs
}

type span struct{ from, to time.Time }

// spans returns the shifts that begin from the local day of t to days later, and those of the day
// before, which may last into it.
func (r Region) spans(t time.Time, days int) ([]span, error) {
	where, err := zone(r.Zone)
	if err != nil {
		return nil, err
	}
	var found []span
	year, month, today := t.In(where).Date()
	for d := -1; d <= days; d++ {
		// some zones skip midnight; none skips noon
		noon := time.Date(year, month, today+d, 12, 0, 0, 0, where)
		if slices.Contains(r.Holidays, Date(noon.Format(time.DateOnly))) {
			continue
		}
		for _, w := range r.Windows {
			if !slices.Contains(w.Days, Day(noon.Weekday())) {
				continue
			}
			end := w.To
			if w.To <= w.From {
				end += At(24, 0)
			}
			if s := (span{wallTime(noon, w.From), wallTime(noon, end)}); s.from.Before(s.to) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// wallTime returns the time at which the local clock shows c, on the day of noon.
func wallTime(noon time.Time, c TimeOfDay) time.Time {
	year, month, day := noon.Date()
	t := time.Date(year, month, day, int(c)/60, int(c)%60, 0, 0, noon.Location())
	// time.Date moves a skipped time forward in some zones and back in others.
	wanted := time.Date(year, month, day, int(c)/60, int(c)%60, 0, 0, time.UTC)
	_, offset := t.Zone()
	shown := t.Add(time.Duration(offset) * time.Second).UTC()
	if gap := wanted.Sub(shown); gap > 0 {
		return t.Add(gap)
	}
	// Of two equal local times, time.Date returns the first in some zones and the second in others.
	_, before := t.Add(-3 * time.Hour).Zone()
	earlier := t.Add(-time.Duration(before-offset) * time.Second)
	if _, o := earlier.Zone(); before > offset && o == before {
		return earlier
	}
	return t
}

// Open reports whether the region is open at t, and until when. Adjacent shifts are one. For a
// region that never closes, until is at least one day later.
func (r Region) Open(t time.Time) (until time.Time, open bool) {
	spans, err := r.spans(t, 1)
	if err != nil {
		return until, false
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	until = t
	for _, s := range spans {
		if !s.from.After(until) && s.to.After(until) {
			until, open = s.to, true
		}
	}
	return until.UTC(), open
}

// Next returns t if the region is open at t, and otherwise when it opens next.
func (r Region) Next(t time.Time) (time.Time, error) {
	if _, open := r.Open(t); open {
		return t.UTC(), nil
	}
	for day := 0; day < horizonDays; day += 7 {
		spans, err := r.spans(t.AddDate(0, 0, day), 7)
		if err != nil {
			return time.Time{}, err
		}
		var first time.Time
		for _, s := range spans {
			if s.from.After(t) && (first.IsZero() || s.from.Before(first)) {
				first = s.from
			}
		}
		if !first.IsZero() {
			return first.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("region %q: %w", r.Name, ErrNeverOpen)
}

// PickRegion returns the region that gets a notice at t, and when. It prefers the region that stays
// open longest, if that is at least atLeast. Otherwise it returns the first region that opens for
// atLeast.
func PickRegion(regions []Region, t time.Time, atLeast time.Duration) (Region, time.Time, error) {
	best, left := -1, time.Duration(0)
	for i, r := range regions {
		until, open := r.Open(t)
		if rest := until.Sub(t); open && rest >= atLeast && rest > left {
			best, left = i, rest
		}
	}
	if best >= 0 {
		return regions[best], t.UTC(), nil
	}
	var first time.Time
	for i, r := range regions {
		if next, ok := r.nextOpenFor(t, atLeast); ok && (best < 0 || next.Before(first)) {
			best, first = i, next
		}
	}
	if best < 0 {
		return Region{}, time.Time{}, ErrNeverOpen
	}
	return regions[best], first, nil
}

// nextOpenFor returns when the region opens next for at least atLeast.
func (r Region) nextOpenFor(t time.Time, atLeast time.Duration) (time.Time, bool) {
	if until, open := r.Open(t); open {
		t = until
	}
	for range 50 { // shifts: more than there are in a week
		next, err := r.Next(t)
		if err != nil {
			return t, false
		}
		until, _ := r.Open(next)
		if until.Sub(next) >= atLeast {
			return next, true
		}
		t = until
	}
	return t, false
}

// Add returns the time after d of open time since t. Time counts while any of the regions is open.
func Add(regions []Region, t time.Time, d time.Duration) (time.Time, error) {
	for range 10_000 { // shifts: bounds the loop for invalid routes
		from, until, err := nextShift(regions, t)
		if err != nil {
			return time.Time{}, err
		}
		if until.Sub(from) >= d {
			return from.Add(d), nil
		}
		d -= until.Sub(from)
		t = until
	}
	return time.Time{}, fmt.Errorf("not enough open time: %s remain", d)
}

// nextShift returns the next time in which a region is open. It begins at t if a region is open at
// t.
func nextShift(regions []Region, t time.Time) (from, until time.Time, err error) {
	err = ErrNeverOpen
	for _, r := range regions {
		next, nextErr := r.Next(t)
		if nextErr != nil {
			continue
		}
		end, _ := r.Open(next)
		if err != nil || next.Before(from) || next.Equal(from) && end.After(until) {
			from, until, err = next, end, nil
		}
	}
	return from, until, err
}
