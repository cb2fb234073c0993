package executor_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// looted is a store from which the requests of open questions are gone: somebody has deleted them, past the executor.
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

// Whose word counts is written in the request. Without it one person's yes would do where two are wanted, and so would a stranger's.
func TestI4_WithoutItsRequestNobodyDecidesAQuestion(t *testing.T) {
	kept, d := &looted{Store: memory.NewStore(nil)}, new(dropper)
	e := office(t, kept, d, func(c *executor.Config) { c.Log = slog.New(slog.DiscardHandler) })
	startAs(t, e, "req")
	kept.gone = true
	for _, who := range []string{"bob", "mallory"} {
		if _, err := says(t, e, who, who+" agrees", yes); !errors.Is(err, executor.ErrUnreadable) {
			t.Errorf("%s is answered with %v, want ErrUnreadable", who, err)
		}
	}
	if e.Stats().Unreadable == 0 {
		t.Error("no operator hears of it")
	}
	if d.dropped.Load() != 0 {
		t.Fatal("the users are dropped, and nobody may say who has to agree")
	}
	kept.gone = false
	for _, who := range []string{"bob", "eve"} { // the same ids: what could not be weighed was not answered
		if _, err := says(t, e, who, who+" agrees", yes); err != nil {
			t.Fatalf("the request is there again, and %s gets %v", who, err)
		}
	}
	if n := d.dropped.Load(); n != 1 {
		t.Errorf("dropped %d times, want once", n)
	}
}
