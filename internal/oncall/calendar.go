package oncall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/teambition/rrule-go"
)

const (
	maxCalendar  = 8 << 20
	maxShift     = 62 * 24 * time.Hour // longer events are not shifts
	fetchTimeout = 20 * time.Second
)

// CalendarConfig configures a [Calendar].
type CalendarConfig struct {
	// Source is the path of an iCalendar file, or an http or https URL.
	Source string
	// Zone is the time zone of times without one. Defaults to UTC.
	Zone *time.Location
	// People maps names and e-mail addresses of the calendar to people. A name without an entry is
	// used as it is.
	People map[string]string
	// Refresh is how often the source is read. Defaults to 5 minutes.
	Refresh time.Duration
	// KeepFor is how long the last copy is used while the source cannot be read. Defaults to 24
	// hours.
	KeepFor time.Duration
	// Client calls the URL. Defaults to http.DefaultClient.
	Client *http.Client
	// Now is the clock of the refresh. Defaults to time.Now.
	Now func() time.Time
}

// Calendar is a schedule in an iCalendar file or at a URL. Each event is a shift. Its attendees are
// on call, or, if it has none, the people in its summary, separated by commas.
type Calendar struct {
	config CalendarConfig

	mu     sync.Mutex
	shifts []shift
	read   time.Time // when the shifts were read
	tried  time.Time
	err    error
}

// shift is an event, with its repetitions.
type shift struct {
	uid        string
	start      time.Time
	length     time.Duration
	people     []string
	repeats    *rrule.Set  // nil if it does not repeat
	overridden []time.Time // starts that another event replaces
}

// NewCalendar returns a schedule. It reads nothing.
func NewCalendar(config CalendarConfig) (*Calendar, error) {
	if config.Source == "" {
		return nil, errors.New("oncall: the calendar has no source")
	}
	config.Refresh, config.KeepFor = cmp.Or(config.Refresh, 5*time.Minute), cmp.Or(config.KeepFor, 24*time.Hour)
	config.Client = cmp.Or(config.Client, http.DefaultClient)
	if config.Zone == nil {
		config.Zone = time.UTC
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Calendar{config: config}, nil
}

// OnCall returns the people of all shifts at a time.
func (c *Calendar) OnCall(ctx context.Context, at time.Time) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	var people []string
	for _, s := range c.shifts {
		if s.covers(at) {
			people = append(people, s.people...)
		}
	}
	return unique(people), nil
}

// covers reports whether the shift or one of its repetitions includes a time. The end of a shift is
// the start of the next one.
func (s shift) covers(at time.Time) bool {
	starts := []time.Time{s.start}
	if s.repeats != nil {
		starts = s.repeats.Between(at.Add(-s.length), at, true)
	}
	for _, start := range starts {
		if !at.Before(start) && at.Before(start.Add(s.length)) && !s.isOverridden(start) {
			return true
		}
	}
	return false
}

func (s shift) isOverridden(start time.Time) bool {
	for _, t := range s.overridden {
		if t.Equal(start) {
			return true
		}
	}
	return false
}

// refresh reads the source if the copy is too old. If that fails, the copy is used for some time.
func (c *Calendar) refresh(ctx context.Context) error {
	now := c.config.Now()
	if !c.tried.IsZero() && now.Sub(c.tried) < c.config.Refresh {
		return c.usable(now)
	}
	data, err := c.load(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var shifts []shift
	if err == nil {
		shifts, err = parseCalendar(data, c.config.Zone, c.config.People)
	}
	if c.tried, c.err = now, err; err == nil {
		c.shifts, c.read = shifts, now
	}
	return c.usable(now)
}

// usable returns why there is no copy that may be used.
func (c *Calendar) usable(now time.Time) error {
	if c.err != nil && (c.read.IsZero() || now.Sub(c.read) > c.config.KeepFor) {
		return c.err
	}
	return nil
}

// load returns the bytes of the source. Errors do not contain the URL, which may hold a secret.
func (c *Calendar) load(ctx context.Context) ([]byte, error) {
	if !strings.HasPrefix(c.config.Source, "https://") && !strings.HasPrefix(c.config.Source, "http://") {
		data, err := os.ReadFile(c.config.Source)
		if err != nil {
			return nil, fmt.Errorf("oncall: %w", err)
		}
		return data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Source, nil)
	if err != nil {
		return nil, errors.New("oncall: the URL of the calendar is invalid")
	}
	response, err := c.config.Client.Do(request)
	if err != nil {
		if cause, ok := errors.AsType[*url.Error](err); ok {
			err = cause.Err
		}
		return nil, fmt.Errorf("oncall: the calendar at %s cannot be read: %w", request.URL.Hostname(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("oncall: the calendar at %s cannot be read: status %d", request.URL.Hostname(), response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxCalendar+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("oncall: the calendar at %s cannot be read: %w", request.URL.Hostname(), err)
	case len(data) > maxCalendar:
		return nil, fmt.Errorf("oncall: the calendar has more than %d MiB", maxCalendar>>20)
	}
	return data, nil
}

// parseCalendar returns the shifts of an iCalendar file. An event that cannot be read is an error:
// a shift that is left out would be a gap.
func parseCalendar(data []byte, zone *time.Location, people map[string]string) ([]shift, error) {
	if !bytes.Contains(data, []byte("BEGIN:VCALENDAR")) {
		return nil, errors.New("oncall: the source is not an iCalendar file")
	}
	calendar, err := ics.ParseCalendar(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("oncall: the calendar cannot be read: %w", err)
	}
	var shifts []shift
	replaced := make(map[string][]time.Time) // by UID
	for n, event := range calendar.Events() {
		if p := event.GetProperty(ics.ComponentPropertyStatus); p != nil && strings.EqualFold(p.Value, "CANCELLED") {
			continue
		}
		s, err := parseShift(event, zone, people)
		if err != nil {
			return nil, fmt.Errorf("oncall: event %d of the calendar: %w", n+1, err)
		}
		if p := event.GetProperty(ics.ComponentProperty(ics.PropertyRecurrenceId)); p != nil {
			at, err := propertyTime(p, zone)
			if err != nil {
				return nil, fmt.Errorf("oncall: event %d of the calendar: RECURRENCE-ID: %w", n+1, err)
			}
			replaced[s.uid] = append(replaced[s.uid], at)
			s.uid = "" // it replaces, and is not replaced
		}
		if s.length > 0 && s.length <= maxShift {
			shifts = append(shifts, s)
		}
	}
	for i := range shifts {
		if shifts[i].uid != "" {
			shifts[i].overridden = replaced[shifts[i].uid]
		}
	}
	return shifts, nil
}

func parseShift(event *ics.VEvent, zone *time.Location, people map[string]string) (s shift, err error) {
	s.uid = event.Id()
	begin := event.GetProperty(ics.ComponentPropertyDtStart)
	if begin == nil {
		return s, errors.New("no DTSTART")
	}
	if s.start, err = propertyTime(begin, zone); err != nil {
		return s, fmt.Errorf("DTSTART: %w", err)
	}
	if s.length, err = shiftLength(event, begin, s.start, zone); err != nil {
		return s, err
	}
	s.people = shiftPeople(event, people)
	rule := event.GetProperty(ics.ComponentPropertyRrule)
	if rule == nil {
		return s, nil
	}
	option, err := rrule.StrToROptionInLocation(rule.Value, s.start.Location())
	if err != nil {
		return s, fmt.Errorf("RRULE: %w", err)
	}
	option.Dtstart = s.start
	r, err := rrule.NewRRule(*option)
	if err != nil {
		return s, fmt.Errorf("RRULE: %w", err)
	}
	s.repeats = &rrule.Set{}
	s.repeats.RRule(r)
	for i := range event.Properties {
		if p := event.Properties[i]; p.IANAToken == string(ics.ComponentPropertyExdate) {
			for value := range strings.SplitSeq(p.Value, ",") {
				one := p
				one.Value = value
				at, err := propertyTime(&one, zone)
				if err != nil {
					return s, fmt.Errorf("EXDATE: %w", err)
				}
				s.repeats.ExDate(at)
			}
		}
	}
	return s, nil
}

// shiftLength returns the length from DTEND, DURATION or, for whole days, one day.
func shiftLength(event *ics.VEvent, begin *ics.IANAProperty, start time.Time, zone *time.Location) (time.Duration, error) {
	if p := event.GetProperty(ics.ComponentPropertyDtEnd); p != nil {
		end, err := propertyTime(p, zone)
		if err != nil {
			return 0, fmt.Errorf("DTEND: %w", err)
		}
		return end.Sub(start), nil
	}
	if p := event.GetProperty(ics.ComponentProperty(ics.PropertyDuration)); p != nil {
		return parseDuration(p.Value)
	}
	if len(begin.Value) == len(dateForm) {
		return start.AddDate(0, 0, 1).Sub(start), nil
	}
	return 0, nil
}

// The forms of iCalendar times.
const (
	dateForm  = "20060102"
	localForm = "20060102T150405"
	utcForm   = "20060102T150405Z"
)

// propertyTime parses a time with the zone that its property names.
func propertyTime(p *ics.IANAProperty, zone *time.Location) (time.Time, error) {
	if names := p.ICalParameters["TZID"]; len(names) == 1 {
		named, err := time.LoadLocation(names[0])
		if err != nil {
			return time.Time{}, fmt.Errorf("unknown time zone %q", names[0])
		}
		zone = named
	}
	value := strings.TrimSpace(p.Value)
	switch len(value) {
	case len(dateForm):
		return time.ParseInLocation(dateForm, value, zone)
	case len(localForm):
		return time.ParseInLocation(localForm, value, zone)
	}
	return time.Parse(utcForm, value)
}

// parseDuration parses durations of weeks, days, hours, minutes and seconds, such as P1DT12H.
func parseDuration(text string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return 0, fmt.Errorf("DURATION: %q is not a duration", text)
	}
	days, clock, _ := strings.Cut(rest, "T")
	var total time.Duration
	for _, part := range []struct {
		text  string
		units map[byte]time.Duration
	}{{days, map[byte]time.Duration{'W': 7 * 24 * time.Hour, 'D': 24 * time.Hour}}, {clock, map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}}} {
		number, digits := 0, 0
		for i := range len(part.text) {
			b := part.text[i]
			if b >= '0' && b <= '9' && digits < 5 {
				number, digits = number*10+int(b-'0'), digits+1
				continue
			}
			unit, known := part.units[b]
			if !known || digits == 0 {
				return 0, fmt.Errorf("DURATION: %q is not a duration", text)
			}
			total, number, digits = total+time.Duration(number)*unit, 0, 0
		}
		if digits > 0 {
			return 0, fmt.Errorf("DURATION: %q is not a duration", text)
		}
	}
	return total, nil
}

// shiftPeople returns the attendees, or the names in the summary.
func shiftPeople(event *ics.VEvent, known map[string]string) (people []string) {
	for _, attendee := range event.Attendees() {
		people = append(people, person(attendee.Email(), known))
	}
	if len(people) > 0 {
		return people
	}
	if p := event.GetProperty(ics.ComponentPropertySummary); p != nil {
		for name := range strings.SplitSeq(ics.FromText(p.Value), ",") {
			people = append(people, person(name, known))
		}
	}
	return people
}

// person returns the person with a name or an e-mail address in a calendar.
func person(name string, known map[string]string) string {
	name = strings.TrimSpace(name)
	if found, ok := known[name]; ok {
		return found
	}
	if found, ok := known[strings.ToLower(name)]; ok {
		return found
	}
	return name
}
