// Package worker starts, claims and executes runs.
package worker

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/progress"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/executor/tracing"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says how runs are executed.
type Config struct {
	Owner       string
	Lease       time.Duration
	Poll        time.Duration
	SaveDelay   time.Duration
	MaxAttempts int
	Log         *slog.Logger
}

// Deps are what a worker uses.
type Deps struct {
	Store      *encrypted.Store
	Docs       *docs.Docs
	Providers  *providers.Set
	Requests   *requests.Service
	Governor   *govern.Governor
	Tracing    *tracing.Tracer
	Background *background.Group
	Contact    *storeclock.Contact
	Stats      *stats.Counter
	Progress   *progress.Hub
}

// Worker starts, claims and executes runs.
type Worker struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	providers  *providers.Set
	requests   *requests.Service
	governor   *govern.Governor
	tracing    *tracing.Tracer
	background *background.Group
	contact    *storeclock.Contact
	stats      *stats.Counter
	progress   *progress.Hub

	leases      heldLeases    // of the runs that are executed here
	solo        soloGate      // lets a suspect be executed alone
	detachedNow atomic.Int64  // executions that have no worker: see runDetached
	workReady   chan struct{} // wakes an idle worker
}

// New returns a worker.
func New(config Config, deps Deps) *Worker {
	return &Worker{
		config: config, store: deps.Store, docs: deps.Docs, providers: deps.Providers, requests: deps.Requests, governor: deps.Governor, tracing: deps.Tracing,
		background: deps.Background, contact: deps.Contact, stats: deps.Stats, progress: deps.Progress, workReady: make(chan struct{}, 1),
	}
}
