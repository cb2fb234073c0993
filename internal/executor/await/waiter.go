// Package await waits for the outcomes of runs.
package await

import (
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says how long to wait.
type Config struct {
	Wait, Poll time.Duration
}

// Waiter waits for outcomes.
type Waiter struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	background *background.Group
	watchers   WatchHub // distributes the store's hints of changes
}

// New returns a waiter.
func New(config Config, store *encrypted.Store, docs *docs.Docs, background *background.Group) *Waiter {
	return &Waiter{config: config, store: store, docs: docs, background: background}
}

// Watch returns hints that there may be new events of a run, here or in another process. stop has
// to be called.
func (w *Waiter) Watch(account, run string) (changed <-chan struct{}, stop func()) {
	return w.watchers.Subscribe(w.background.Ctx, w.store, store.Key{Account: account, Run: run})
}

// Close waits until no hint is read any more, after the background has ended.
func (w *Waiter) Close() { w.watchers.Wait() }
