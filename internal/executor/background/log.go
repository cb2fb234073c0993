package background

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/fermata-go/fermata/internal/logsample"
	"github.com/fermata-go/fermata/provider"
)

// errorLog limits log lines about errors of loops. While the store is unavailable each loop fails
// about once a second, in every process: a few lines a minute are enough.
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

// LogRepeated logs that something failed that is tried again soon, unless nothing failed or the
// group is ending. what is one of few fixed texts; each of them is logged a few times a minute.
func (g *Group) LogRepeated(what string, err error, more ...any) {
	if err == nil || g.Ctx.Err() != nil {
		return
	}
	left, ok := g.errors.limiterFor(what).Allow()
	if !ok {
		return
	}
	if left > 0 {
		more = append(more, "suppressed", left)
	}
	g.Log.Error(what, append([]any{"err", err}, more...)...)
}

// ErrorCount collects errors of one pass that have the same cause, so that the pass logs one line.
// It is safe for concurrent use.
type ErrorCount struct {
	mu    sync.Mutex
	first error
	count int
}

// Add adds an error.
func (t *ErrorCount) Add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count++; t.count == 1 {
		t.first = err
	}
}

// Err returns the first error, with the number of all; nil if there was none.
func (t *ErrorCount) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count < 2 {
		return t.first
	}
	return fmt.Errorf("%d failed, the first: %w", t.count, t.first)
}

// ErrorClass describes an error by the types in its chain, without types that only hold a text. The
// texts may contain data of the run and must not be logged, except for those of a
// [provider.LogError].
func ErrorClass(err error) string {
	var names []string
	var walk func(error)
	walk = func(err error) {
		if name := fmt.Sprintf("%T", err); err != nil && !strings.HasPrefix(name, "*fmt.") && !strings.HasPrefix(name, "*errors.") {
			name = strings.TrimPrefix(name, "*")
			if told, ok := err.(provider.LogError); ok {
				name += " (" + told.ForLog() + ")"
			}
			names = append(names, name)
		}
		switch inner := err.(type) {
		case interface{ Unwrap() error }:
			walk(inner.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range inner.Unwrap() {
				walk(one)
			}
		}
	}
	walk(err)
	return cmp.Or(strings.Join(names, ": "), "an error without a type")
}
