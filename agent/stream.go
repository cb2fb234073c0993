package agent

import (
	"context"
	"iter"
	"sync"

	"github.com/fermata-go/fermata/internal/safely"
)

// stream makes an iterator of work that emits events from any number of goroutines. The error of the work comes last. Whoever
// stops listening cancels the work, and is let go when it has come to rest.
func stream(ctx context.Context, work func(ctx context.Context, emit func(*Event)) error) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events, gone := make(chan *Event), make(chan struct{})
		emit := func(e *Event) {
			select {
			case events <- e:
			case <-gone:
			}
		}
		var failure error
		var wg sync.WaitGroup
		wg.Go(func() {
			defer close(events)
			defer safely.Recover(&failure)
			failure = work(ctx, emit)
		})
		defer wg.Wait()
		defer close(gone)
		defer cancel()
		for e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if failure != nil {
			yield(nil, failure)
		}
	}
}
