package audit

import (
	"fmt"
	"time"
)

// momentLayout has a fixed width, so that a time has one spelling and texts sort as times do.
const momentLayout = "2006-01-02T15:04:05.000000Z"

// Moment is a time in a record: UTC, in microseconds, which is what databases keep.
type Moment struct{ time.Time }

// At makes a moment of a time. The zero time stays zero.
func At(t time.Time) Moment {
	if t.IsZero() {
		return Moment{}
	}
	return Moment{t.UTC().Truncate(time.Microsecond)}
}

// String writes the moment as records do.
func (m Moment) String() string { return m.UTC().Format(momentLayout) }

// MarshalText writes the moment in its one spelling.
func (m Moment) MarshalText() ([]byte, error) {
	if y := m.UTC().Year(); y < 1 || y > 9999 {
		return nil, fmt.Errorf("the year %d has no four digits", y)
	}
	return []byte(m.String()), nil
}

// MarshalJSON writes the moment in its one spelling.
func (m Moment) MarshalJSON() ([]byte, error) {
	text, err := m.MarshalText()
	return []byte(`"` + string(text) + `"`), err
}

// UnmarshalText reads that spelling and no other.
func (m *Moment) UnmarshalText(text []byte) error {
	t, err := time.Parse(momentLayout, string(text))
	if err != nil || t.Format(momentLayout) != string(text) {
		return fmt.Errorf("%.40q is no time like %s", text, momentLayout)
	}
	*m = Moment{t.UTC()}
	return nil
}

// UnmarshalJSON reads that spelling and no other.
func (m *Moment) UnmarshalJSON(data []byte) error {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return fmt.Errorf("%.40q is no time like %s", data, momentLayout)
	}
	return m.UnmarshalText(data[1 : len(data)-1])
}
