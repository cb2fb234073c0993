package policy

import (
	"context"
	"sync"
	"sync/atomic"
)

// Source is what a decision is asked of: a [Set], or the [LiveSet] set of the moment.
type Source interface {
	// Current returns the set to decide with, from the demands to the decision; nil if there is none.
	Current() *Set
}

var (
	_ Source = (*Set)(nil)
	_ Source = (*LiveSet)(nil)
)

// Current returns the set itself.
func (s *Set) Current() *Set { return s }

// LiveSet holds the set of the moment, and loads a new one while decisions go on. A decision is made by one set or by the
// other, never by parts of both. A file that cannot be loaded changes nothing: the old set stays.
type LiveSet struct {
	read    func(context.Context) (file string, src []byte, err error)
	options Options
	current atomic.Pointer[Set]
	loading sync.Mutex // one load at a time: an older file must not overtake a newer one
}

// NewLiveSet makes a Live that gets its file from read. It holds nothing before the first Reload.
func NewLiveSet(read func(context.Context) (file string, src []byte, err error), options Options) *LiveSet {
	return &LiveSet{read: read, options: options}
}

// Current returns the set of the moment; nil before the first one was loaded.
func (l *LiveSet) Current() *Set { return l.current.Load() }

// Reload is what a load came to: the set before, which may be nil, and the one after.
type Reload struct{ Before, After *Set }

// Changed reports whether it is another set now.
func (c Reload) Changed() bool { return c.Before != c.After }

// Reload reads the file and takes its set if it can be loaded. With an error the set of before stays, and stands on both
// sides of the change. The same bytes are no change.
func (l *LiveSet) Reload(ctx context.Context) (Reload, error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	before := l.current.Load()
	same := Reload{Before: before, After: before}
	file, src, err := l.read(ctx)
	if err != nil {
		return same, err
	}
	if before != nil && before.digest == digestOf(src) && before.file == file {
		return same, nil
	}
	after, err := Load(file, src, l.options)
	if err != nil {
		return same, err
	}
	l.current.Store(after)
	return Reload{Before: before, After: after}, nil
}
