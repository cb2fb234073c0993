package calendarsim

import (
	"slices"
	"sort"
	"time"

	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/timespan"
)

// span is a period, excluding its end.
type span struct{ from, to time.Time }

// office is where people work: between two clock times, Monday to Friday, except on holidays. The
// model uses its spans, which are computed minute by minute. The routes use its region.
type office struct {
	name, zone, channel string
	from, to            int // hours
	holidays            []string
	spans               []span
}

func (p *office) region() hours.Region {
	r := hours.Region{
		Name: p.name, Zone: p.zone, Channel: p.channel,
		Windows: []hours.Window{{Days: hours.Weekdays(), From: hours.At(p.from, 0), To: hours.At(p.to, 0)}},
	}
	for _, day := range p.holidays {
		r.Holidays = append(r.Holidays, hours.Date(day))
	}
	return r
}

// precompute computes the spans minute by minute.
func (p *office) precompute(from, to time.Time) error {
	zone, err := time.LoadLocation(p.zone)
	if err != nil {
		return err
	}
	p.spans = nil
	var began time.Time
	for t := from.Truncate(time.Minute); t.Before(to); t = t.Add(time.Minute) {
		local := t.In(zone)
		open := local.Weekday() != time.Saturday && local.Weekday() != time.Sunday && local.Hour() >= p.from && local.Hour() < p.to &&
			!slices.Contains(p.holidays, local.Format(time.DateOnly))
		switch {
		case open && began.IsZero():
			began = t
		case !open && !began.IsZero():
			p.spans = append(p.spans, span{began, t})
			began = time.Time{}
		}
	}
	return nil
}

// next returns the spans from the first one that ends after t.
func (p *office) next(t time.Time) []span {
	return p.spans[sort.Search(len(p.spans), func(i int) bool { return p.spans[i].to.After(t) }):]
}

// openUntil returns the first time from t on at which the office is open.
func (p *office) openUntil(t time.Time) time.Time {
	if rest := p.next(t); len(rest) > 0 && rest[0].from.After(t) {
		return rest[0].from
	}
	return t
}

// after returns when d of open time has passed since t.
func (p *office) after(t time.Time, d time.Duration) time.Time {
	for _, s := range p.next(t) {
		if s.from.After(t) {
			t = s.from
		}
		if left := s.to.Sub(t); left >= d {
			return t.Add(d)
		} else {
			d -= left
		}
		t = s.to
	}
	return t.Add(d)
}

// pick returns the office that gets a notice at t: the one that stays open longest, for at least
// half an hour, or the first that opens.
func pick(places []*office, t time.Time) (channel string, when time.Time) {
	best, left := -1, minRemaining-1
	for i, p := range places {
		if rest := p.next(t); len(rest) > 0 && !rest[0].from.After(t) && rest[0].to.Sub(t) > left {
			best, left = i, rest[0].to.Sub(t)
		}
	}
	if best >= 0 {
		return places[best].channel, t
	}
	for i, p := range places {
		for _, s := range p.next(t) {
			if s.from.After(t) && s.to.Sub(s.from) >= minRemaining {
				if best < 0 || s.from.Before(when) {
					best, when = i, s.from
				}
				break
			}
		}
	}
	return places[best].channel, when
}

const minRemaining = 30 * time.Minute

// The offices: one in each part of the world.
func offices(year int, holidays []string) []*office {
	return []*office{
		{name: "emea", zone: "Europe/Zurich", channel: "chat:emea", from: 9, to: 18, holidays: holidays},
		{name: "apac", zone: "Asia/Singapore", channel: "chat:apac", from: 9, to: 18},
		{name: "amer", zone: "America/New_York", channel: "chat:amer", from: 9, to: 18, holidays: holidays[:1]},
	}
}

func hrs(n float64) timespan.Duration { return timespan.Duration(n * float64(time.Hour)) }
