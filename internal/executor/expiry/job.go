// Package expiry expires requests whose deadline has passed, and extends deadlines that fell into
// an outage.
package expiry

import (
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says when an outage begins.
type Config struct {
	OutageAfter time.Duration
	Poll        time.Duration
	Log         *slog.Logger
}

// Job expires requests.
type Job struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	requests   *requests.Service
	background *background.Group
	contact    *storeclock.Contact
	stats      *stats.Counter
	wakeWorker func() // called when a run has something to do
}

// New returns a job.
func New(config Config, store *encrypted.Store, docs *docs.Docs, requests *requests.Service, background *background.Group, contact *storeclock.Contact, stats *stats.Counter, wakeWorker func()) *Job {
	return &Job{config: config, store: store, docs: docs, requests: requests, background: background, contact: contact, stats: stats, wakeWorker: wakeWorker}
}
