package timespan_test

import (
	"math"
	"testing"
	"testing/quick"
	"time"

	"github.com/fermata-go/fermata/internal/timespan"
)

// A written duration can be read again, also the longest ones: stored requests have them.
func TestDuration_TextRoundTrips(t *testing.T) {
	roundTrips := func(d time.Duration) bool {
		text, err := timespan.Duration(d).MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got timespan.Duration
		err = got.UnmarshalText(text)
		return err == nil && time.Duration(got) == d
	}
	for _, d := range []time.Duration{0, time.Nanosecond, 24 * time.Hour, 48 * time.Hour, 90 * 366 * 24 * time.Hour, math.MaxInt64, math.MaxInt64 / (24 * time.Hour) * 24 * time.Hour} {
		if !roundTrips(d) {
			t.Errorf("%s does not round-trip", timespan.Duration(d))
		}
	}
	if err := quick.Check(func(n uint32) bool { return roundTrips(time.Duration(n%100000) * 24 * time.Hour) }, nil); err != nil {
		t.Error(err)
	}
}

func TestParse_Errors(t *testing.T) {
	for _, text := range []string{"", "90", "-1h", "-1d", "1w", "106752d", "999999d", "1d2h"} {
		if got, err := timespan.Parse(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
