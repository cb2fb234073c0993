package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
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
	seen, ctx, out := w.(*statusWriter), hctx.Context(), s.openSSE(w)
	roles, _ := hctx.Operation().Metadata[rolesMetadata].([]Role)
	if r.Method == http.MethodHead { // nobody reads it
		return
	}
	seen.stream = func() {
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer s.recheck(func() bool { return s.stillAuthorized(r, roles) }, end)()
		show(ctx, out)
	}
}

// stillIn reports whether whoever sent a request would be let in with it again. While nobody can say, they would. It is called where nobody recovers.
func (s *Server) stillAuthorized(r *http.Request, roles []Role) (in bool) {
	defer func() {
		if recover() != nil {
			s.metrics.errors.WithLabelValues("panic").Inc()
			s.config.Log.Error("authentication panicked", "stack", string(debug.Stack()))
			in = true
		}
	}()
	principal, err := s.identify(r)
	if err != nil {
		return !errors.Is(err, ErrUnauthenticated)
	}
	return principal.Account == principalOf(r.Context()).Account && principal.Has(roles...)
}

// recheck calls end once somebody is not in any more. After stop it looks no longer. Between two looks there is a timer and no goroutine: there may be
// many streams.
func (s *Server) recheck(in func() bool, end func()) (stop func()) {
	var mu sync.Mutex
	over := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.config.Limits.AuthRecheck, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if !in() {
			end()
			return
		}
		timer.Reset(s.config.Limits.AuthRecheck)
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
