package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(*testing.T) store.Checkpoints { return memory.New() })
}

func TestStore(t *testing.T) {
	storetest.Store(t, func(*testing.T) store.Store { return memory.NewStore(nil) })
}

// The reference must match itself: this tests the comparison.
func TestReference_MatchesItself(t *testing.T) {
	storetest.Reference(t, func(_ *testing.T, clock func() time.Time) store.Store { return memory.NewStore(clock) })
}

// A cursor that this store never returned belongs to another store.
func TestFeed_UnknownCursorReturnsErrInvalid(t *testing.T) {
	runs := memory.NewStore(nil)
	for _, after := range []string{"1", "0", "-1", "+1", "01"} {
		if _, _, err := runs.Feed(t.Context(), "acme", after, 0); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v; want ErrKey", after, err)
		}
	}
}
