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

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// tight is a store that has no room for anything new while it is full, and answers all the same.
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

// silent is a store that tells the time, as SQLite does without a look at its file, and nothing else.
type silent struct{ store.Store }

func (silent) CountPending(context.Context, string, int) (int, error) { return 0, errSilent }

var errSilent = errors.New("no answer")

func TestReady_AsksForMoreThanTheTime(t *testing.T) {
	e := executorOf(t, silent{memory.NewStore(nil)}, spy(t), nil)
	if err := e.Ready(t.Context()); !errors.Is(err, errSilent) {
		t.Errorf("ready: %v", err)
	}
}

// A server on a full disk, or with a quota that was used up, was ready: nothing could be started or decided, and nobody was paged, because it still answered who
// asked for the time.
func TestReady_NotWhileTheStoreTakesNothing(t *testing.T) {
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
		ready(nil) // nobody wanted anything
		if _, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:spy", Input: []byte(`{"text":"a"}`)}); !errors.Is(err, why) {
			t.Fatal(err)
		}
		ready(why)
		s.work.Store(true)
		time.Sleep(time.Hour)
		ready(why) // as long as there is something that cannot be written
		s.full.Store(false)
		time.Sleep(time.Minute)
		ready(nil)
	})
}

// readOnly is a store from which this process can only read.
type readOnly struct{ store.Store }

func (readOnly) CheckWritable(context.Context) error { return errReadOnly }

var errReadOnly = errors.New("INSERT on audit")

// A server that had no right to write was ready, and answered every decision with 503.
func TestReady_NotWhereNothingCanBeWritten(t *testing.T) {
	e := executorOf(t, readOnly{memory.NewStore(nil)}, spy(t), nil)
	if err := e.Ready(t.Context()); !errors.Is(err, errReadOnly) {
		t.Errorf("ready: %v", err)
	}
}
