package background

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/fermata-go/fermata/internal/logsample"
	"github.com/fermata-go/fermata/provider"
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

// LogRepeated logs that something failed that is tried again soon, unless nothing failed or the group is ending. what is one of few fixed texts; each of them
// is logged a few times a minute.
func (g *Group) LogRepeated(what string, err error, more ...any) {
	if err == nil || g.Ctx.Err() != nil {
		return
	}
	left, ok := g.errors.limiterFor(what).Allow()
	if !ok {
		return
	}
	if left > 0 {
		more = append(more, "leftOut", left)
	}
	g.Log.Error(what, append([]any{"err", err}, more...)...)
}

// ErrorCount counts what failed because nothing can be written. It comes again at the next look, all of it and for the same reason, so the log gets it as one: the disk
// that is full may be that of the log. The zero tally is empty; it may be used by several at once.
type ErrorCount struct {
	mu    sync.Mutex
	first error
	count int
}

func (t *ErrorCount) Add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count++; t.count == 1 {
		t.first = err
	}
}

// Err is the first failure, with the number of all; nil if there is none.
func (t *ErrorCount) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count < 2 {
		return t.first
	}
	return fmt.Errorf("%d failed, the first: %w", t.count, t.first)
}

// ErrorClass describes an error by the types in its chain, without those that only hold a text: the texts may hold data of the run, and must not be logged
// but for those of a [provider.LogError].
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
