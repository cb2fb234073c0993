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

// Weekdays are Monday to Friday.
func Weekdays() []Day { return []Day{1, 2, 3, 4, 5} }

// String is the short name of the day.
func (d Day) String() string {
	if int(d) < 0 || int(d) >= len(dayNames) {
		return fmt.Sprintf("day %d", int(d))
	}
	return dayNames[d]
}

// MarshalText writes the short name.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the short name.
func (d *Day) UnmarshalText(text []byte) error {
	i := slices.Index(dayNames, string(text))
	if i < 0 {
		return fmt.Errorf("%q is no day: use one of %s", text, strings.Join(dayNames, ", "))
	}
	*d = Day(i)
	return nil
}

// TimeOfDay is a time on the wall clock, in minutes since midnight, written as "09:30". "24:00" is the end of a day.
type TimeOfDay int

// At makes a Clock.
func At(hour, minute int) TimeOfDay { return TimeOfDay(60*hour + minute) }

// String is the time as it is written.
func (c TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// MarshalText writes the time.
func (c TimeOfDay) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the time.
func (c *TimeOfDay) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "24:00" {
		*c = At(24, 0)
		return nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return fmt.Errorf("%q is no time of day: write it as 09:30", text)
	}
	*c = At(t.Hour(), t.Minute())
	return nil
}

// Date is a day of the calendar, written as "2026-12-25".
type Date string

func (d Date) check() error {
	if _, err := time.Parse(time.DateOnly, string(d)); err != nil {
		return fmt.Errorf("%q is no date: write it as 2026-12-25", string(d))
	}
	return nil
}
