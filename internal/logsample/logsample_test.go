package logsample

import (
	"testing"
	"time"
)

func TestSampler_LimitsLinesAndCountsDropped(t *testing.T) {
	var l Sampler
	now := time.Now()
	written := 0
	for range 100 {
		if left, ok := l.allow(now); ok {
			written++
			if left != 0 {
				t.Errorf("%d lines dropped before line %d", left, written)
			}
		}
	}
	if written != maxPerWindow {
		t.Errorf("got %d lines", written)
	}
	if left, ok := l.allow(now.Add(window)); !ok || left != 100-maxPerWindow {
		t.Errorf("in the next minute: %d dropped, allowed: %v", left, ok)
	}
}
