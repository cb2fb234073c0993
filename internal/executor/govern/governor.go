// Package govern applies the policy to actions: rulings, counters, grants, and replay.
package govern

import (
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says which policy is in force.
type Config struct {
	// Policy is nil if there is none.
	Policy         policy.Source
	Environment    string
	Zone           *time.Location
	DiscardRulings bool
	Log            *slog.Logger
}

// Governor applies the policy.
type Governor struct {
	config      Config
	store       *encrypted.Store
	docs        *docs.Docs
	policies    policyCache // policies that are known to be in the store
	chargeQueue retry.Queue // actions that are charged to the counters of an account
}

// New returns a governor.
func New(config Config, store *encrypted.Store, docs *docs.Docs) *Governor {
	return &Governor{config: config, store: store, docs: docs}
}
