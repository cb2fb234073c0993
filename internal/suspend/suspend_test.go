package suspend_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/suspend"
)

// Nobody can put the machine to sleep in a test. But whoever is awake does not sleep.
func TestTotal_ConstantWhileAwake(t *testing.T) {
	before := suspend.Total()
	if before < 0 {
		t.Fatalf("it has slept for %s", before)
	}
	for range 1000 {
		if now := suspend.Total(); (now - before).Abs() > time.Second {
			t.Fatalf("it fell asleep: %s, and then %s", before, now)
		}
	}
}
