package policy

import (
	"context"
	"sync"
	"sync/atomic"
)

// Source returns the set for a decision: a [Set], or a [LiveSet] that can be reloaded.
type Source interface {
	// Current returns the set to use for one decision, including its counter queries, or nil if
	// there is none.
	Current() *Set
}

var (
	_ Source = (*Set)(nil)
	_ Source = (*LiveSet)(nil)
)

// Current returns the set itself.
func (s *Set) Current() *Set { return s }

// LiveSet holds the current set and loads a new one while decisions are made. A decision uses one
// set, never parts of two. If a file cannot be loaded, the old set stays.
type LiveSet struct {
	read    func(context.Context) (file string, src []byte, err error)
	options Options
	current atomic.Pointer[Set]
	loading sync.Mutex // one load at a time, so that an older file does not replace a newer one
}

// NewLiveSet returns a LiveSet that reads its file with read. It is empty until the first Reload.
func NewLiveSet(read func(context.Context) (file string, src []byte, err error), options Options) *LiveSet {
	return &LiveSet{read: read, options: options}
}

// Current returns the current set, or nil before the first load.
func (l *LiveSet) Current() *Set { return l.current.Load() }

// Reload is the result of a reload: the set before, which may be nil, and the set after.
type Reload struct{ Before, After *Set }

// Changed reports whether the set has changed.
func (c Reload) Changed() bool { return c.Before != c.After }

// Reload reads the file and replaces the set if it can be loaded. On error the old set stays, and
// both sides of the result are the old set. The same bytes are not a change.
func (l *LiveSet) Reload(ctx context.Context) (Reload, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	return l.reload(ctx, l.options, false)
}

// ReloadWith is Reload with other options, for example with other routes. The same bytes are loaded
// again, because they may not fit the options. On error the old options stay, too.
func (l *LiveSet) ReloadWith(ctx context.Context, options Options) (Reload, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	change, err := l.reload(ctx, options, true)
	if err == nil {
		l.options = options
	}
	return change, err
}

func (l *LiveSet) reload(ctx context.Context, options Options, again bool) (Reload, error) {
	before := l.current.Load()
	same := Reload{Before: before, After: before}
	file, src, err := l.read(ctx)
	if err != nil {
		return same, err
	}
	unchanged := before != nil && before.digest == digestOf(src) && before.file == file
	if unchanged && !again {
		return same, nil
	}
	after, err := Load(file, src, options)
	if err != nil || unchanged {
		return same, err
	}
	l.current.Store(after)
	return Reload{Before: before, After: after}, nil
}
