package executor

import (
	"sync"

	"github.com/fermata-go/fermata/internal/logsample"
)

// errorLog are the lines in the log about what is tried again all the time, by what it is. While the store is away each of them fails once a second, on every
// replica: a few lines a minute say as much.
type errorLog struct {
	mu       sync.Mutex
	limiters map[string]*logsample.Sampler
}

func (c *errorLog) limiterFor(what string) *logsample.Sampler {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limiters == nil {
		c.limiters = make(map[string]*logsample.Sampler)
	}
	if c.limiters[what] == nil {
		c.limiters[what] = new(logsample.Sampler)
	}
	return c.limiters[what]
}

// complain says in the log that something failed that is tried again in a moment, unless nothing did or the executor is ending. What is one of few fixed texts.
func (e *Executor) logRepeated(what string, err error, more ...any) {
	if err == nil || e.ctx.Err() != nil {
		return
	}
	left, ok := e.errorLog.limiterFor(what).Allow()
	if !ok {
		return
	}
	if left > 0 {
		more = append(more, "suppressed", left)
	}
	e.config.Log.Error(what, append([]any{"err", err}, more...)...)
}
