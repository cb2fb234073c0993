package server

import (
	"context"
	"sync"
	"time"
)

// storeProbe finds out whether the store answers at once. Whoever asks while somebody else does, or just after, gets the same answer.
type storeProbe struct {
	check func(context.Context) error

	mu        sync.Mutex
	checkedAt time.Time
	fast      bool
}

const (
	// fastStore is how long the store takes at most when it has nothing else to do.
	fastStore = 10 * time.Millisecond
	// probeTTL is how long an answer holds.
	probeTTL = 20 * time.Millisecond
)

func (p *storeProbe) ok() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.checkedAt) < probeTTL {
		return p.fast
	}
	ctx, cancel := context.WithTimeout(context.Background(), fastStore)
	defer cancel()
	p.fast = p.check(ctx) == nil && ctx.Err() == nil
	p.checkedAt = time.Now()
	return p.fast
}
