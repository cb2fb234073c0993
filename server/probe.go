package server

import (
	"context"
	"sync"
	"time"
)

// probe finds out whether the store answers at once. Whoever asks while somebody else does, or just after, gets the same answer.
type probe struct {
	ask func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	quick bool
}

const (
	// quickly is how long the store takes at most when it has nothing else to do.
	quickly = 10 * time.Millisecond
	// probeHolds is how long an answer holds.
	probeHolds = 20 * time.Millisecond
)

func (p *probe) ok() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < probeHolds {
		return p.quick
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	p.quick = p.ask(ctx) == nil && ctx.Err() == nil
	p.asked = time.Now()
	return p.quick
}
