package admission

import (
	"context"
	"sync"
	"time"
)

// StoreProbe checks whether the store answers quickly. Concurrent and immediately following callers
// share one result.
type StoreProbe struct {
	Check func(context.Context) error

	mu        sync.Mutex
	checkedAt time.Time
	fast      bool
}

const (
	// fastStore is the response time of an idle store.
	fastStore = 10 * time.Millisecond
	// probeTTL is how long a result is reused.
	probeTTL = 20 * time.Millisecond
)

func (p *StoreProbe) OK() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.checkedAt) < probeTTL {
		return p.fast
	}
	ctx, cancel := context.WithTimeout(context.Background(), fastStore)
	defer cancel()
	p.fast = p.Check(ctx) == nil && ctx.Err() == nil
	p.checkedAt = time.Now()
	return p.fast
}
