// Package deliveries has the operations on what the server sends: deliveries to people, and events
// to webhooks.
package deliveries

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

// Handlers has the operations.
type Handlers struct {
	Executor   *executor.Executor
	Visibility visibility.Checker
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerDeliveries(to)
	h.registerWebhooks(to)
}
