// Package eventstream yields the events of concurrent work as an iterator.
package eventstream

import (
	"context"
	"iter"
	"sync"

	"github.com/fermata-go/fermata/internal/recovery"
)

// New returns an iterator over the events that work emits from any number of goroutines. The error
// of the work comes last. Leaving the loop cancels the work and waits until it has ended.
func New[E any](ctx context.Context, work func(ctx context.Context, emit func(E)) error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// events is never closed: a goroutine that outlives the work may still send to it.
		events, gone, over := make(chan E), make(chan struct{}), make(chan struct{})
		emit := func(e E) {
			select {
			case events <- e:
			case <-gone:
			case <-over:
			}
		}
		failure := recovery.ErrExited
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(over)
			defer recovery.Recover(&failure)
			growStack()
			failure = work(ctx, emit)
		})
		defer wg.Wait()
		defer close(gone)
		defer cancel()
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case <-over:
				if failure != nil {
					var none E
					yield(none, failure)
				}
				return
			}
		}
	}
}

// growStack grows the stack of a new goroutine once. Graphs and agents work deep in nested calls:
// the stack would be copied four times on the way, which took a fifth of the time to wait and
// resume.
//
//go:noinline
func growStack() byte {
	var room [16 << 10]byte
	touchStack(&room)
	return room[0]
}

//go:noinline
func touchStack(room *[16 << 10]byte) { room[0] = 1 }
