package executor

import (
	"sync"

	"github.com/fermata-go/fermata/internal/sparse"
)

// complaints are the lines in the log about what is tried again all the time, by what it is. While the store is away each of them fails once a second, on every
// replica: a few lines a minute say as much.
type complaints struct {
	mu   sync.Mutex
	made map[string]*sparse.Lines
}

func (c *complaints) about(what string) *sparse.Lines {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = make(map[string]*sparse.Lines)
	}
	if c.made[what] == nil {
		c.made[what] = new(sparse.Lines)
	}
	return c.made[what]
}

// complain says in the log that something failed that is tried again in a moment, unless nothing did or the executor is ending. What is one of few fixed texts.
func (e *Executor) complain(what string, err error, more ...any) {
	if err == nil || e.life.Err() != nil {
		return
	}
	left, ok := e.complaints.about(what).Next()
	if !ok {
		return
	}
	if left > 0 {
		more = append(more, "leftOut", left)
	}
	e.config.Log.Error(what, append([]any{"err", err}, more...)...)
}
