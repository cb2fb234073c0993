// Package decide records decisions: it checks the answers of a request, applies them as votes, and
// keeps one answer for each resume id.
package decide

import (
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/tracing"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says who claims a run after a decision.
type Config struct {
	Owner string
	Lease time.Duration
}

// Decider records decisions.
type Decider struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	requests   *requests.Service
	governor   *govern.Governor
	providers  *providers.Set
	tracing    *tracing.Tracer
	background *background.Group
}

// New returns a decider.
func New(config Config, store *encrypted.Store, docs *docs.Docs, requests *requests.Service, governor *govern.Governor, providers *providers.Set, tracing *tracing.Tracer, background *background.Group) *Decider {
	return &Decider{config: config, store: store, docs: docs, requests: requests, governor: governor, providers: providers, tracing: tracing, background: background}
}
