package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
)

const (
	// readyTimeout is how long the store has for an answer.
	readyTimeout = 2 * time.Second
	// readyTTL is how long an answer holds.
	readyTTL = 100 * time.Millisecond
)

// readiness finds out whether a server is ready. Whoever asks while somebody else does, or just after, gets the same answer: anybody may ask, and nobody is
// refused, so the database must not be asked as often.
type readiness struct {
	check func(context.Context) error
	busy  chan struct{} // one at a time has it, and what follows

	checkedAt time.Time
	err       error
}

func newReadiness(ask func(context.Context) error) *readiness {
	return &readiness{check: ask, busy: make(chan struct{}, 1)}
}

func (r *readiness) ready(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.checkedAt.IsZero() && time.Since(r.checkedAt) < readyTTL {
		return r.err
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout) // whoever asks first may go: others wait for it
	defer cancel()
	r.err = r.check(patience)
	r.checkedAt = time.Now()
	return r.err
}

func (s *Server) registerHealth() {
	ok := func() *struct{ Body api.Health } {
		return &struct{ Body api.Health }{api.Health{Status: "ok", Version: s.config.Version}}
	}
	ready := newReadiness(s.config.Executor.Ready)
	huma.Register(s.api, operation("healthz", http.MethodGet, "/healthz", "Whether the process is alive"), func(context.Context, *struct{}) (*struct{ Body api.Health }, error) {
		return ok(), nil
	})
	huma.Register(s.api, operation("readyz", http.MethodGet, "/readyz", "Whether it can serve: the store answers and can be written to, and it is not about to end"), func(ctx context.Context, _ *struct{}) (*struct{ Body api.Health }, error) {
		if err := ready.ready(ctx); err != nil {
			s.logUnready(err)
			return nil, overloaded("not ready")
		}
		return ok(), nil
	})
}

// unreadyLogInterval is how often the log says why a server is not ready: whoever looks does so every few seconds, and anybody can.
const unreadyLogInterval = time.Minute

// sayUnready has it in the log why the server is not ready. That it ends is in there already, and who asked and went away says nothing about it.
func (s *Server) logUnready(err error) {
	if !errors.Is(err, executor.ErrClosed) && !errors.Is(err, context.Canceled) && s.unreadyLog.due(time.Now(), unreadyLogInterval) {
		s.config.Log.Error("not ready", "err", err)
	}
}
