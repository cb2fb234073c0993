package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// tight is a store that rejects new data while it is full, but answers reads.
type tight struct {
	store.Store
	why        error
	full, work atomic.Bool
}

func (s *tight) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	if s.full.Load() {
		return store.Lease{}, fmt.Errorf("create a run: %w", s.why)
	}
	return s.Store.Create(ctx, run)
}

func (s *tight) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	if s.full.Load() && s.work.Load() {
		return nil, fmt.Errorf("claim a run: %w", s.why)
	}
	return s.Store.Claim(ctx, claim)
}

// silent is a store that answers only Now, as SQLite does without reading its file.
type silent struct{ store.Store }

func (silent) CountPending(context.Context, string, []string, int) (int, error) { return 0, errSilent }

var errSilent = errors.New("no answer")

func TestReady_ReadsFromTheStore(t *testing.T) {
	e := executorOf(t, silent{memory.NewStore(nil)}, spy(t), nil)
	if err := e.Ready(t.Context()); !errors.Is(err, errSilent) {
		t.Errorf("ready: %v", err)
	}
}

// Regression: a server with a full disk or an exhausted quota was ready, because it still answered
// Now. No run could be started or decided, and no operator was paged.
func TestReady_NotWhileTheStoreIsFull(t *testing.T) {
	for _, why := range []error{store.ErrFull, store.ErrDisk} {
		t.Run(why.Error(), func(t *testing.T) { notReadyWhile(t, why) })
	}
}

func notReadyWhile(t *testing.T, why error) {
	synctest.Test(t, func(t *testing.T) {
		s := &tight{Store: memory.NewStore(nil), why: why}
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Poll, c.Log = time.Second, slog.New(slog.DiscardHandler) })
		e.StartWorkers()
		ready := func(want error) {
			t.Helper()
			synctest.Wait()
			if err := e.Ready(t.Context()); !errors.Is(err, want) {
				t.Errorf("ready: %v, want %v", err, want)
			}
		}
		ready(nil)
		s.full.Store(true)
		ready(nil) // no write was attempted
		if _, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:spy", Input: []byte(`{"text":"a"}`)}); !errors.Is(err, why) {
			t.Fatal(err)
		}
		ready(why)
		s.work.Store(true)
		time.Sleep(time.Hour)
		ready(why) // while a write cannot succeed
		s.full.Store(false)
		time.Sleep(time.Minute)
		ready(nil)
	})
}

// readOnly is a store to which this process cannot write.
type readOnly struct{ store.Store }

func (readOnly) CheckWritable(context.Context) error { return errReadOnly }

var errReadOnly = errors.New("INSERT on audit")

// Regression: a server without the right to write was ready, and answered every decision with 503.
func TestReady_NotWithoutWriteAccess(t *testing.T) {
	e := executorOf(t, readOnly{memory.NewStore(nil)}, spy(t), nil)
	if err := e.Ready(t.Context()); !errors.Is(err, errReadOnly) {
		t.Errorf("ready: %v", err)
	}
}
