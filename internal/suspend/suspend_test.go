package suspend_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/suspend"
)

// A test cannot suspend the machine, so it checks that the total does not grow.
func TestTotal_ConstantWhileAwake(t *testing.T) {
	before := suspend.Total()
	if before < 0 {
		t.Fatalf("Total() = %s", before)
	}
	for range 1000 {
		if now := suspend.Total(); (now - before).Abs() > time.Second {
			t.Fatalf("Total() changed from %s to %s", before, now)
		}
	}
}
