// Package timespan has a duration that is written with days: 90m, 24h, 30d.
package timespan

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Duration is a duration in YAML and JSON: 90m, 24h, 30d. A day has 24 hours.
type Duration time.Duration

// String omits zero units and uses days from two days on: 24h, not 24h0m0s, and 2d.
func (d Duration) String() string {
	if span := time.Duration(d); span > day && span%day == 0 {
		return strconv.FormatInt(int64(span/day), 10) + "d"
	}
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the same text as String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the text of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := Parse(string(text))
	*d = Duration(span)
	return err
}

var days = regexp.MustCompile(`^(\d{1,6})d$`)

// maxDays is the longest duration in days.
const maxDays = int(math.MaxInt64 / day)

// Parse parses the format of [time.ParseDuration], and days. Negative durations are errors.
func Parse(text string) (time.Duration, error) {
	if found := days.FindStringSubmatch(text); found != nil {
		count, _ := strconv.Atoi(found[1])
		if count > maxDays {
			return 0, fmt.Errorf("the duration %q is longer than %dd", text, maxDays)
		}
		return time.Duration(count) * day, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q; use for example 90m, 24h or 30d", text)
	}
	if span < 0 {
		return 0, errors.New("the duration is negative")
	}
	return span, nil
}
