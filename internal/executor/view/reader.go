// Package view reads runs, requests and events for their account.
package view

import (
	"time"

	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Reader reads.
type Reader struct {
	poll       time.Duration
	store      *encrypted.Store
	docs       *docs.Docs
	providers  *providers.Set
	waiter     *await.Waiter
	background *background.Group
}

// New returns a reader that looks for new events once in poll.
func New(poll time.Duration, store *encrypted.Store, docs *docs.Docs, providers *providers.Set, waiter *await.Waiter, background *background.Group) *Reader {
	return &Reader{poll: poll, store: store, docs: docs, providers: providers, waiter: waiter, background: background}
}
