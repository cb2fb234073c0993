package desk

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a duration written as "30m", "24h" or "2d". A day has 24 hours.
type Duration time.Duration

// String returns the duration as written: "1d", "2h", "1h30m".
func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d > 0 && d%day == 0 && d > day {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the duration.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("invalid duration %q: use for example 30m, 24h or 2d", s)
		}
		*d = Duration(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("invalid duration %q: use for example 30m, 24h or 2d", s)
	}
	*d = Duration(parsed)
	return nil
}
