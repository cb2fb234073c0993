package server

import (
	"context"
	"errors"
	"net/http"
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
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			s.recheck(ctx, r, end)
		}()
		watched := r.WithContext(ctx)
		defer func() {
			end()
			<-gone
			r.Pattern = watched.Pattern // for whoever counts
		}()
		next.ServeHTTP(w, watched)
	})
}

// recheck calls end once whoever sent a request would not be let in with it any more. While nobody can say, nothing changes.
func (s *Server) recheck(ctx context.Context, r *http.Request, end func()) {
	again := time.NewTicker(s.config.Limits.Recheck)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if _, err := s.identify(r); errors.Is(err, ErrUnauthenticated) {
				end()
				return
			}
		}
	}
}
