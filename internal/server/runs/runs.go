// Package runs has the operations that start, resume, show and follow runs, and those on the graphs
// that they execute.
package runs

import (
	"log/slog"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

// Limits bounds what a caller may start.
type Limits struct {
	Body             int64 // maximum size of a request body, in bytes
	OpenRequests     int   // open requests of an account
	ActiveRuns       int   // ready and running runs of an account
	RequestsPerAgent int   // requests of an agent in an hour; 0 means no limit
}

// Handlers has the operations.
type Handlers struct {
	Executor   *executor.Executor
	Visibility visibility.Checker
	Streams    *stream.Opener
	Limits     Limits
	Log        *slog.Logger
	// Failed records a problem that a stream sends.
	Failed func(p *problems.Problem, operation string)

	quotas quotaCache
}

// WaitingForQuota returns how many callers wait for a running quota count of an account.
func (h *Handlers) WaitingForQuota(account string) int { return h.quotas.WaitingFor(account) }

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerChat(to)
	h.registerCreate(to)
	h.registerRuns(to)
	h.registerEvents(to)
	h.registerGraphs(to)
}
