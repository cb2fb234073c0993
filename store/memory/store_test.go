package memory_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/store/storetest"
)

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(*testing.T) store.Checkpoints { return memory.New() })
}

func TestStore(t *testing.T) {
	storetest.Store(t, func(*testing.T) store.Store { return memory.NewRuns(nil) })
}

// The reference is the same as itself: this is a test of the comparison.
func TestReference(t *testing.T) {
	storetest.Reference(t, func(_ *testing.T, clock func() time.Time) store.Store { return memory.NewRuns(clock) })
}
