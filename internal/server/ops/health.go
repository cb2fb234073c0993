package ops

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

const (
	// readyTimeout is how long the store may take to answer.
	readyTimeout = 2 * time.Second
	// readyTTL is how long a result is reused.
	readyTTL = 100 * time.Millisecond
)

// readiness checks whether the server is ready. Concurrent and immediately following callers share
// one result: the endpoint is public and never rejects, so it must not query the database for each
// call.
type readiness struct {
	check func(context.Context) error
	busy  chan struct{} // guards the fields below

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
	// the first caller may disconnect while others wait for the result
	timeoutCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	r.err = r.check(timeoutCtx)
	r.checkedAt = time.Now()
	return r.err
}

func (h *Handlers) registerHealth(to huma.API) {
	ok := func() *struct{ Body api.Health } {
		return &struct{ Body api.Health }{api.Health{Status: "ok", Version: h.Version}}
	}
	ready := newReadiness(h.Ready)
	huma.Register(to, endpoint.New("healthz", http.MethodGet, "/healthz", "Report whether the process is alive"), func(context.Context, *struct{}) (*struct{ Body api.Health }, error) {
		return ok(), nil
	})
	huma.Register(to, endpoint.New("readyz", http.MethodGet, "/readyz", "Report whether the server can serve: the store is reachable and writable, and the server is not shutting down"), func(ctx context.Context, _ *struct{}) (*struct{ Body api.Health }, error) {
		if err := ready.ready(ctx); err != nil {
			h.logUnready(err)
			return nil, problems.Overloaded("not ready")
		}
		return ok(), nil
	})
}

// unreadyLogInterval is how often the cause is logged: probes come every few seconds, and the
// endpoint is public.
const unreadyLogInterval = time.Minute

// logUnready logs why the server is not ready. A shutdown is logged elsewhere, and a disconnected
// probe says nothing about readiness.
func (h *Handlers) logUnready(err error) {
	if !errors.Is(err, executor.ErrClosed) && !errors.Is(err, context.Canceled) && h.unreadyLog.Due(time.Now(), unreadyLogInterval) {
		h.Log.Error("not ready", "err", err)
	}
}
