// Package ops has the operations for operators: health checks and the configuration.
package ops

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
)

// Handlers has the operations.
type Handlers struct {
	// Ready reports why the server cannot serve; nil if it can.
	Ready    func(context.Context) error
	Version  string
	Settings []api.Setting // the effective configuration, without secrets
	Log      *slog.Logger

	unreadyLog authn.Interval // limits log messages
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerHealth(to)
	huma.Register(to, endpoint.New("configuration", http.MethodGet, api.Prefix+"/configuration", "Get the effective configuration", authn.RoleAdmin),
		func(context.Context, *struct{}) (*endpoint.Page[api.Setting], error) {
			return endpoint.Paged(h.Settings, len(h.Settings), func(v api.Setting) api.Setting { return v }, nil)
		})
}
