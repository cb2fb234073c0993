package hours

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Day is a day of the week, written as "mon".
type Day time.Weekday

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Weekdays returns Monday to Friday.
func Weekdays() []Day { return []Day{1, 2, 3, 4, 5} }

// String returns the short name of the day.
func (d Day) String() string {
	if int(d) < 0 || int(d) >= len(dayNames) {
		return fmt.Sprintf("day %d", int(d))
	}
	return dayNames[d]
}

// MarshalText returns the short name.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the short name.
func (d *Day) UnmarshalText(text []byte) error {
	i := slices.Index(dayNames, string(text))
	if i < 0 {
		return fmt.Errorf("invalid day %q: use one of %s", text, strings.Join(dayNames, ", "))
	}
	*d = Day(i)
	return nil
}

// TimeOfDay is a local time in minutes since midnight, written as "09:30". "24:00" is the end of a
// day.
type TimeOfDay int

// At returns a TimeOfDay.
func At(hour, minute int) TimeOfDay { return TimeOfDay(60*hour + minute) }

// String returns the time as written.
func (c TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// MarshalText returns the time as written.
func (c TimeOfDay) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the time.
func (c *TimeOfDay) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "24:00" {
		*c = At(24, 0)
		return nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return fmt.Errorf("invalid time of day %q: use for example 09:30", text)
	}
	*c = At(t.Hour(), t.Minute())
	return nil
}

// Date is a calendar date, written as "2026-12-25".
type Date string

func (d Date) check() error {
	if _, err := time.Parse(time.DateOnly, string(d)); err != nil {
		return fmt.Errorf("invalid date %q: use for example 2026-12-25", string(d))
	}
	return nil
}
