package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// watch ends event streams of those who are known no longer. Anything else is answered before that could happen; a stream stays open for hours, and would
// outlive the session or the key with which it was opened.
func (s *Server) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who(r.Context()).Account == "" || !isStream(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, end := context.WithCancel(r.Context())
		stop := s.recheck(r, end)
		watched := r.WithContext(ctx)
		defer func() {
			end()
			stop()
			r.Pattern = watched.Pattern // for whoever counts
		}()
		next.ServeHTTP(w, watched)
	})
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
