package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
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
	huma.Register(s.api, operation("readyz", http.MethodGet, "/readyz", "Whether it can serve: the store answers, and it is not about to end"), func(ctx context.Context, _ *struct{}) (*struct{ Body api.Health }, error) {
		ctx, cancel := context.WithTimeout(ctx, readyPatience)
		defer cancel()
		if err := s.config.Executor.Ready(ctx); err != nil {
			return nil, busy("not ready")
		}
		return ok(), nil
	})
}
