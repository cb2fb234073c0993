package audit

import (
	"fmt"
	"time"
)

// timestampLayout has a fixed width, so that each time has one encoding, and texts sort like times.
const timestampLayout = "2006-01-02T15:04:05.000000Z"

// Timestamp is a time in a record: UTC in microseconds, the precision of the databases.
type Timestamp struct{ time.Time }

// TimestampOf converts a time. The zero time stays zero.
func TimestampOf(t time.Time) Timestamp {
	if t.IsZero() {
		return Timestamp{}
	}
	return Timestamp{t.UTC().Truncate(time.Microsecond)}
}

// String returns the time as in records.
func (m Timestamp) String() string { return m.UTC().Format(timestampLayout) }

// MarshalText returns the canonical encoding.
func (m Timestamp) MarshalText() ([]byte, error) {
	if y := m.UTC().Year(); y < 1 || y > 9999 {
		return nil, fmt.Errorf("year %d does not have four digits", y)
	}
	return []byte(m.String()), nil
}

// MarshalJSON returns the canonical encoding.
func (m Timestamp) MarshalJSON() ([]byte, error) {
	text, err := m.MarshalText()
	return []byte(`"` + string(text) + `"`), err
}

// UnmarshalText accepts only the canonical encoding.
func (m *Timestamp) UnmarshalText(text []byte) error {
	t, err := time.Parse(timestampLayout, string(text))
	if err != nil || t.Format(timestampLayout) != string(text) {
		return fmt.Errorf("invalid time %.40q: the format is %s", text, timestampLayout)
	}
	*m = Timestamp{t.UTC()}
	return nil
}

// UnmarshalJSON accepts only the canonical encoding.
func (m *Timestamp) UnmarshalJSON(data []byte) error {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return fmt.Errorf("invalid time %.40q: the format is %s", data, timestampLayout)
	}
	return m.UnmarshalText(data[1 : len(data)-1])
}
