package awake_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/awake"
)

// Nobody can put the machine to sleep in a test. But whoever is awake does not sleep.
func TestSlept_StandsStillWhileTheMachineIsAwake(t *testing.T) {
	before := awake.Slept()
	if before < 0 {
		t.Fatalf("it has slept for %s", before)
	}
	for range 1000 {
		if now := awake.Slept(); (now - before).Abs() > time.Second {
			t.Fatalf("it fell asleep: %s, and then %s", before, now)
		}
	}
}
