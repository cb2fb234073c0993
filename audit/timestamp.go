package audit

import (
	"fmt"
	"time"
)

// timestampLayout has a fixed width, so that a time has one spelling and texts sort as times do.
const timestampLayout = "2006-01-02T15:04:05.000000Z"

// Timestamp is a time in a record: UTC, in microseconds, which is what databases keep.
type Timestamp struct{ time.Time }

// TimestampOf makes a moment of a time. The zero time stays zero.
func TimestampOf(t time.Time) Timestamp {
	if t.IsZero() {
		return Timestamp{}
	}
	return Timestamp{t.UTC().Truncate(time.Microsecond)}
}

// String writes the moment as records do.
func (m Timestamp) String() string { return m.UTC().Format(timestampLayout) }

// MarshalText writes the moment in its one spelling.
func (m Timestamp) MarshalText() ([]byte, error) {
	if y := m.UTC().Year(); y < 1 || y > 9999 {
		return nil, fmt.Errorf("the year %d has no four digits", y)
	}
	return []byte(m.String()), nil
}

// MarshalJSON writes the moment in its one spelling.
func (m Timestamp) MarshalJSON() ([]byte, error) {
	text, err := m.MarshalText()
	return []byte(`"` + string(text) + `"`), err
}

// UnmarshalText reads that spelling and no other.
func (m *Timestamp) UnmarshalText(text []byte) error {
	t, err := time.Parse(timestampLayout, string(text))
	if err != nil || t.Format(timestampLayout) != string(text) {
		return fmt.Errorf("%.40q is no time like %s", text, timestampLayout)
	}
	*m = Timestamp{t.UTC()}
	return nil
}

// UnmarshalJSON reads that spelling and no other.
func (m *Timestamp) UnmarshalJSON(data []byte) error {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return fmt.Errorf("%.40q is no time like %s", data, timestampLayout)
	}
	return m.UnmarshalText(data[1 : len(data)-1])
}
