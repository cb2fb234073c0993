package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// stream lets an operation answer with a stream: show is called after the operation is left. A stream stays open for hours, and the calls between
// the frame and an operation need four times the stack that a stream does, for each of them.
//
// A stream of those who are known no longer ends. Anything else is answered before that could happen; a stream would outlive the session or the key with
// which it was opened.
func (s *Server) stream(hctx huma.Context, show func(context.Context, *sse)) {
	r, w := humago.Unwrap(hctx)
	seen, ctx, out := w.(*seenWriter), hctx.Context(), s.open(w)
	if r.Method == http.MethodHead { // nobody reads it
		return
	}
	seen.rest = func() {
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer s.recheck(r, end)()
		show(ctx, out)
	}
}

// recheck calls end once whoever sent a request would not be let in with it any more. While nobody can say, nothing changes. After stop it looks at
// the request no longer. Between two looks there is a timer and no goroutine: there may be many streams.
func (s *Server) recheck(r *http.Request, end func()) (stop func()) {
	var mu sync.Mutex
	over := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.config.Limits.Recheck, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if _, err := s.identify(r); errors.Is(err, ErrUnauthenticated) {
			end()
			return
		}
		timer.Reset(s.config.Limits.Recheck)
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
