package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// endedSessionRetention is how long a session that is over is kept. As long as it is, nobody can begin another one with the same proof; it outlasts every
	// proof, so that after it the proof itself is too old.
	endedSessionRetention = 2 * max(flowTTL, devLinkTTL)
	// cleanupInterval is how often a replica looks for them, cleanupBatch how many it deletes at once. If there were so many, there are more.
	cleanupInterval = 10 * time.Minute
	cleanupBatch    = 1000
	// cleanupTimeout is how long somebody who signs in or out may be kept waiting for that.
	cleanupTimeout = 2 * time.Second
)

// tidy deletes sessions that are over, now and then, when somebody signs in or out: who does neither leaves nothing behind. Several replicas may
// do it at once. It does not matter to whoever signs in if it fails.
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
		s.config.Log.Error("sessions that are over could not be deleted", "err", err)
	}
	if forgotten >= cleanupBatch {
		p.lastCleanup.reset()
	}
}

// interval says when something is due that is done now and then. The zero value says so at once.
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

// again makes it due once more.
func (s *interval) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Time{}
}
