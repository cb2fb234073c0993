package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Health says that the server is there.
type Health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// readyPatience is how long the store has for an answer.
const readyPatience = 2 * time.Second

func (s *Server) registerHealth() {
	ok := func() *struct{ Body Health } { return &struct{ Body Health }{Health{"ok", s.config.Version}} }
	huma.Register(s.api, operation("healthz", http.MethodGet, "/healthz", "Whether the process is alive"), func(context.Context, *struct{}) (*struct{ Body Health }, error) {
		return ok(), nil
	})
	huma.Register(s.api, operation("readyz", http.MethodGet, "/readyz", "Whether it can serve: the store answers, and it is not about to end"), func(ctx context.Context, _ *struct{}) (*struct{ Body Health }, error) {
		ctx, cancel := context.WithTimeout(ctx, readyPatience)
		defer cancel()
		if err := s.config.Executor.Ready(ctx); err != nil {
			return nil, busy("not ready")
		}
		return ok(), nil
	})
}
