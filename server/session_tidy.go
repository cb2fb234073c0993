package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// sessionKept is how long a session that is over is kept. As long as it is, nobody can begin another one with the same proof; it outlasts every
	// proof, so that after it the proof itself is too old.
	sessionKept = 2 * max(flowLife, devLife)
	// tidyEvery is how often a replica looks for them, tidyMost how many it deletes at once. If there were so many, there are more.
	tidyEvery = 10 * time.Minute
	tidyMost  = 1000
	// tidyPatience is how long somebody who signs in or out may be kept waiting for that.
	tidyPatience = 2 * time.Second
)

// tidy deletes sessions that are over, now and then, when somebody signs in or out: who does neither leaves nothing behind. Several replicas may
// do it at once. It does not matter to whoever signs in if it fails.
func (s *Server) tidy(r *http.Request) {
	p := s.people
	if !p.tidied.due(p.now(), tidyEvery) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tidyPatience)
	defer cancel()
	forgotten, err := p.Credentials.ForgetCredentials(ctx, sessionKind+"_", p.now().Add(-sessionKept), tidyMost)
	if err != nil {
		s.metrics.errors.WithLabelValues("sessions").Inc()
		s.config.Log.Error("sessions that are over could not be deleted", "err", err)
	}
	if forgotten >= tidyMost {
		p.tidied.again()
	}
}

// sometimes says when something is due that is done now and then. The zero value says so at once.
type sometimes struct {
	mu   sync.Mutex
	last time.Time
}

func (s *sometimes) due(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && now.Sub(s.last) < every {
		return false
	}
	s.last = now
	return true
}

// again makes it due once more.
func (s *sometimes) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Time{}
}
