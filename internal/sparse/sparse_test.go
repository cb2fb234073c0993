package sparse

import (
	"testing"
	"time"
)

func TestLines_AreFewAndSayHowManyAreMissing(t *testing.T) {
	var l Lines
	now := time.Now()
	written := 0
	for range 100 {
		if left, ok := l.next(now); ok {
			written++
			if left != 0 {
				t.Errorf("%d are missing before line %d", left, written)
			}
		}
	}
	if written != most {
		t.Errorf("there are %d lines", written)
	}
	if left, ok := l.next(now.Add(window)); !ok || left != 100-most {
		t.Errorf("in the next minute %d are missing, and it may have one: %v", left, ok)
	}
}
