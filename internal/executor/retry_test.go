package executor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// distant is a store with latency that counts writes.
type distant struct {
	store.Store
	amends atomic.Int64
}

func (d *distant) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	d.amends.Add(1)
	time.Sleep(20 * time.Millisecond)
	return d.Store.CommitWrites(ctx, account, beside)
}

// Concurrent actions are charged to one counter. One of them is first, and each of the others
// succeeds at its second attempt. Regression: with random retries each action needed a dozen
// attempts, which took seconds.
func TestLimits_ConflictingChargeSucceedsAtTheSecondAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const actions = 32
		s, d := &distant{Store: memory.NewStore(nil)}, new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, `
default: allow
rules:
- {id: many, when: req.tool == "drop-table", limit: {max: 100, window: 1h, by: [requester]}, then: deny}
`)
		})
		var all sync.WaitGroup
		for n := range actions {
			all.Go(func() { completed(t, mustRun(t, e, dropAs("req", fmt.Sprint("drop-", n)))) })
		}
		all.Wait()
		if n := d.dropped.Load(); n != actions {
			t.Errorf("%d went ahead, want %d", n, actions)
		}
		if tries := s.amends.Load(); tries > 2*actions {
			t.Errorf("%d attempts to charge %d actions", tries, actions)
		}
	})
}
