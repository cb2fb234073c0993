package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// looted is a store from which the documents of open requests are missing, because someone deleted
// them directly.
type looted struct {
	store.Store
	gone bool
}

func (l *looted) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	stands, err := l.Store.RunSnapshot(ctx, account, stateKey, own)
	if l.gone {
		stands.Documents = slices.DeleteFunc(stands.Documents, func(p store.Document) bool { return p.Kind == store.RequestDocument })
	}
	return stands, err
}

// The request document contains the requirement. Without it one approval would be enough where two
// are needed, and so would that of a person without the right to decide.
func TestI4_RequestWithoutItsDocumentCannotBeDecided(t *testing.T) {
	kept, d := &looted{Store: memory.NewStore(nil)}, new(dropper)
	e := office(t, kept, d, func(c *executor.Config) { c.Log = slog.New(slog.DiscardHandler) })
	startAs(t, e, "req")
	kept.gone = true
	for _, who := range []string{"bob", "mallory"} {
		if _, err := says(t, e, who, who+" agrees", yes); !errors.Is(err, executor.ErrUnreadable) {
			t.Errorf("%s gets %v, want ErrUnreadable", who, err)
		}
	}
	if e.Stats().Unreadable == 0 {
		t.Error("the unreadable request is not counted")
	}
	if d.dropped.Load() != 0 {
		t.Fatal("the users are dropped without a known requirement")
	}
	kept.gone = false
	// the same resume ids: a vote that could not be evaluated was not answered
	for _, who := range []string{"bob", "eve"} {
		if _, err := says(t, e, who, who+" agrees", yes); err != nil {
			t.Fatalf("the request document is back, and %s gets %v", who, err)
		}
	}
	if n := d.dropped.Load(); n != 1 {
		t.Errorf("dropped %d times, want once", n)
	}
}
