package agent

import (
	"context"
	"iter"
	"sync"

	"github.com/fermata-go/fermata/internal/recovery"
)

// stream makes an iterator of work that emits events from any number of goroutines. The error of the work comes last. Whoever
// stops listening cancels the work, and is let go when it has come to rest.
func stream(ctx context.Context, work func(ctx context.Context, emit func(*Event)) error) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// events is never closed: somebody who should have ended with the work may still want to say something.
		events, gone, over := make(chan *Event), make(chan struct{}), make(chan struct{})
		emit := func(e *Event) {
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
					yield(nil, failure)
				}
				return
			}
		}
	}
}

// growStack makes room on the stack of a new goroutine, once. Agents work deep down in calls of calls: the stack would be copied four
// times on the way there, which was a fifth of what it costs to wait and go on.
//
//go:noinline
func growStack() byte {
	var room [16 << 10]byte
	touchStack(&room)
	return room[0]
}

//go:noinline
func touchStack(room *[16 << 10]byte) { room[0] = 1 }
