package clientcmd

import (
	"testing"
)

func TestFormatSeconds_IsReadable(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0s", 0.34: "300ms", 5.06: "5.1s", 42: "42s", 75: "1m15s", 605: "10m", 7260: "2h1m", 45000: "13h", 360000: "100h"} {
		if got := formatSeconds(seconds, 1); got != want {
			t.Errorf("%v is %s, and not %s", seconds, got, want)
		}
	}
	if got := formatSeconds(0, 0); got != "-" {
		t.Errorf("the duration of no sample is %s", got)
	}
}
