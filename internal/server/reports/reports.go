// Package reports has the operations that report the history of an account: the audit log, its
// checks, and analytics.
package reports

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
)

// Handlers has the operations.
type Handlers struct {
	Executor *executor.Executor
	// HeavyRead acquires a permit to read the history of the caller's account.
	HeavyRead func(context.Context) (done func(), err error)
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerAudit(to)
	h.registerAnalytics(to)
}
