// Package periodic runs jobs over all accounts at intervals, in one process at a time.
package periodic

import (
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Runner runs jobs.
type Runner struct {
	poll       time.Duration
	store      *encrypted.Store
	docs       *docs.Docs
	background *background.Group
}

// New returns a runner.
func New(poll time.Duration, store *encrypted.Store, docs *docs.Docs, background *background.Group) *Runner {
	return &Runner{poll: poll, store: store, docs: docs, background: background}
}
