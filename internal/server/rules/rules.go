// Package rules has the operations on the rules of an account: policies, routes and grants.
package rules

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

// Handlers has the operations.
type Handlers struct {
	Executor   *executor.Executor
	Visibility visibility.Checker
	// HeavyRead acquires a permit to read the history of the caller's account.
	HeavyRead func(context.Context) (done func(), err error)
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerPolicies(to)
	h.registerGrants(to)
}
