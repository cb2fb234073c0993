package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// endedSessionRetention is how long an ended session is kept. While it is kept, its proof
	// cannot be used again; it outlasts the validity of every proof.
	endedSessionRetention = 2 * max(flowTTL, devLinkTTL)
	// cleanupInterval is how often a replica deletes ended sessions, cleanupBatch how many at once.
	// A full batch means that there are more.
	cleanupInterval = 10 * time.Minute
	cleanupBatch    = 1000
	// cleanupTimeout bounds how long a sign-in or sign-out waits for the cleanup.
	cleanupTimeout = 2 * time.Second
)

// deleteEndedSessions deletes ended sessions at intervals, during sign-in and sign-out. Several
// replicas may do it at once. A failure does not affect the sign-in.
func (s *Server) deleteEndedSessions(r *http.Request) {
	p := s.sessions
	if !p.lastCleanup.due(p.now(), cleanupInterval) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cleanupTimeout)
	defer cancel()
	forgotten, err := p.Credentials.PurgeCredentials(ctx, sessionIDKind+"_", p.now().Add(-endedSessionRetention), cleanupBatch)
	if err != nil {
		s.metrics.errors.WithLabelValues("sessions").Inc()
		s.config.Log.Error("deleting ended sessions failed", "err", err)
	}
	if forgotten >= cleanupBatch {
		p.lastCleanup.reset()
	}
}

// interval reports when a periodic action is due. The zero value is due at once.
type interval struct {
	mu   sync.Mutex
	last time.Time
}

func (s *interval) due(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && now.Sub(s.last) < every {
		return false
	}
	s.last = now
	return true
}

// reset makes it due again.
func (s *interval) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Time{}
}
