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

// readyPatience is how long the store has for an answer.
const readyPatience = 2 * time.Second

func (s *Server) registerHealth() {
	ok := func() *struct{ Body api.Health } {
		return &struct{ Body api.Health }{api.Health{Status: "ok", Version: s.config.Version}}
	}
	huma.Register(s.api, operation("healthz", http.MethodGet, "/healthz", "Whether the process is alive"), func(context.Context, *struct{}) (*struct{ Body api.Health }, error) {
		return ok(), nil
	})
	huma.Register(s.api, operation("readyz", http.MethodGet, "/readyz", "Whether it can serve: the store answers and can be written to, and it is not about to end"), func(ctx context.Context, _ *struct{}) (*struct{ Body api.Health }, error) {
		ctx, cancel := context.WithTimeout(ctx, readyPatience)
		defer cancel()
		if err := s.config.Executor.Ready(ctx); err != nil {
			s.sayUnready(err)
			return nil, busy("not ready")
		}
		return ok(), nil
	})
}

// unreadyEvery is how often the log says why a server is not ready: whoever looks does so every few seconds, and anybody can.
const unreadyEvery = time.Minute

// sayUnready has it in the log why the server is not ready. That it ends is in there already, and who asked and went away says nothing about it.
func (s *Server) sayUnready(err error) {
	if !errors.Is(err, executor.ErrClosed) && !errors.Is(err, context.Canceled) && s.unready.due(time.Now(), unreadyEvery) {
		s.config.Log.Error("not ready", "err", err)
	}
}
