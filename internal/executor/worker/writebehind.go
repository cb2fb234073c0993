package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// checkpointBuffer is a write-behind buffer for the checkpoint of a run while it is executed. It
// collects saves for Config.SaveDelay, so that steps which follow each other quickly need one
// transaction; the last of them are written in the transaction that ends the execution.
//
// Collected saves are written when the delay is over, before a policy allows or denies an action,
// before an effect begins, and when the execution ends. A process that fails before that loses
// them, as if it had failed that much earlier. They were not visible: interrupts become visible
// when the execution ends, counters are charged and effects begin after a write, and decisions are
// stored elsewhere.
type checkpointBuffer struct {
	state store.Checkpoints // fenced
	ctx   context.Context   // of the process
	key   store.Key
	delay time.Duration // Config.SaveDelay; 0 or less: each save is written at once

	// atStore is a lock for calls to the store. It is a channel because waiting for it must end
	// with the caller's context.
	storeLock chan struct{}

	mu      sync.Mutex       // guards the rest
	loaded  bool             // whole was read, or is known to be empty
	current store.Checkpoint // as the run sees it: with what is not written yet
	// the version in the store; whole.Version also counts saves that are not written yet
	stored int64
	// the parts in the store: a part that came and went before a write need not be deleted there
	storedParts map[string]bool
	pending     map[string]partChange // since the last write
	size        int                   // of changed, in bytes
	timer       *time.Timer           // set while something is to be written
	closed      bool                  // the execution is over
	failure     error                 // of a write that failed: it is unknown what the store has
}

// maxBuffered is how many bytes are collected at most. More than that is worth its own transaction,
// and the transaction that ends the execution must not become larger than a store accepts.
const maxBuffered = 1 << 20

// partChange is the new value of a part; nil if it was deleted.
type partChange []byte

var _ store.Checkpoints = (*checkpointBuffer)(nil)

// newCheckpointBuffer creates the buffer of an execution. known is the state in the store, if the
// caller has read it.
func (w *Worker) newCheckpointBuffer(work *store.ClaimedRun, known *store.Checkpoint) *checkpointBuffer {
	d := &checkpointBuffer{
		//mutate:provider-store-fenced
		state: w.store.Fenced(work.Lease), ctx: w.background.Ctx, key: store.Key{Account: work.Run.Account, Run: work.Run.ID},
		delay: w.config.SaveDelay, storeLock: make(chan struct{}, 1),
	}
	d.loaded = work.Lease.Fence == 1 // it was created just now: nothing can have been saved
	if known != nil {
		d.setStored(store.Checkpoint{Version: known.Version, Parts: maps.Clone(known.Parts)})
	}
	return d
}

// setStored sets what the store has. It is called with the lock held, or before anybody else has
// the draft.
func (d *checkpointBuffer) setStored(stored store.Checkpoint) {
	d.loaded, d.current, d.stored = true, stored, stored.Version
	d.storedParts = make(map[string]bool, len(stored.Parts))
	for name := range stored.Parts {
		d.storedParts[name] = true
	}
}

// Load returns the state as the run knows it.
func (d *checkpointBuffer) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if key != d.key {
		return d.state.Load(ctx, key)
	}
	if err := d.ensureLoaded(ctx); err != nil {
		return store.Checkpoint{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current.Version == 0 {
		return store.Checkpoint{}, store.ErrNotFound
	}
	return store.Checkpoint{Version: d.current.Version, Parts: maps.Clone(d.current.Parts)}, nil
}

// ensureLoaded reads the state, unless it is loaded. No other process can change it as long as the
// lease is valid.
func (d *checkpointBuffer) ensureLoaded(ctx context.Context) error {
	if d.isLoaded() {
		return nil
	}
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isLoaded() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, background.CommitTimeout) // close waits for it
	defer cancel()
	loaded, err := d.state.Load(bounded, d.key)
	if err != nil && !docs.IsNotFound(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setStored(loaded)
	return nil
}

func (d *checkpointBuffer) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

func (d *checkpointBuffer) isLoaded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loaded
}

// lock is for atStore.
func (d *checkpointBuffer) lock(ctx context.Context) error {
	select {
	case d.storeLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *checkpointBuffer) unlock() { <-d.storeLock }

// Save adds a change to the buffer. It is durable after the next flush.
func (d *checkpointBuffer) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if key != d.key {
		return d.state.Save(ctx, key, base, delta)
	}
	if err := d.ensureLoaded(ctx); err != nil {
		return 0, err
	}
	version, full, err := d.buffer(base, delta)
	if err == nil && (full || d.delay <= 0) {
		err = d.flush(ctx)
	}
	return version, err
}

// buffer adds a change, and reports whether so much is collected that it should be written at once.
func (d *checkpointBuffer) buffer(base int64, delta store.Delta) (version int64, full bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.failure != nil: //mutate:buffer-broken-after-unknown-write
		return 0, false, d.failure
	case d.closed:
		return 0, false, store.ErrFenced
	case base != d.current.Version:
		return 0, false, store.ErrStale
	}
	if d.pending == nil {
		d.pending = make(map[string]partChange)
	}
	if d.current.Parts == nil {
		d.current.Parts = make(map[string][]byte)
	}
	for _, name := range delta.Delete {
		d.pending[name] = nil
		delete(d.current.Parts, name)
	}
	for _, part := range delta.Put {
		data := slices.Clip(part.Data)
		if data == nil {
			data = []byte{}
		}
		d.pending[part.Name], d.current.Parts[part.Name] = data, data
		d.size += len(data)
	}
	d.current.Version++
	if d.timer == nil && d.delay > 0 {
		d.timer = time.AfterFunc(d.delay, d.flushDue) //mutate:buffer-timer
	}
	return d.current.Version, d.size > maxBuffered, nil
}

// flushDue is called by the timer. If the write fails, the next save of the run returns the error.
func (d *checkpointBuffer) flushDue() {
	_ = d.flush(d.ctx)
}

// flush writes the buffered changes, and returns when they are durable. After an error nothing is
// written any more: it is unknown whether the store has them, and a second try could overwrite what
// another owner wrote since. For the same reason a flush does not end with ctx once it has begun:
// the timeout of one step must not make the buffer unusable for the others. After the end of the
// execution flush returns ErrFenced, so that no effect begins whose cause may never be saved.
func (d *checkpointBuffer) flush(ctx context.Context) error {
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isClosed() { //mutate:buffer-closed-guard
		return store.ErrFenced
	}
	save, err := d.drain()
	if err != nil || save == nil {
		return err
	}
	//mutate:buffer-write-ignores-cancel
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	version, err := d.state.Save(lasting, d.key, save.BaseVersion, save.Delta)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure = err; err == nil {
		d.stored = version
	}
	return err
}

// drain returns what is to be written, and removes it from the buffer; nil if there is nothing.
func (d *checkpointBuffer) drain() (*store.CheckpointSave, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.failure != nil || d.pending == nil {
		return nil, d.failure
	}
	save := &store.CheckpointSave{BaseVersion: d.stored}
	if d.storedParts == nil {
		d.storedParts = make(map[string]bool)
	}
	for _, name := range slices.Sorted(maps.Keys(d.pending)) {
		data := d.pending[name]
		switch {
		case data != nil:
			save.Delta.Put = append(save.Delta.Put, store.Part{Name: name, Data: data})
		case d.storedParts[name]:
			save.Delta.Delete = append(save.Delta.Delete, name)
		}
		d.storedParts[name] = data != nil
	}
	d.pending, d.size = nil, 0
	return save, nil
}

// finalState is what can happen to the stored state when the execution ends: unsaved is added to
// it, or drop deletes it. Either is nil if there is nothing to do.
type finalState struct {
	unsaved *store.CheckpointSave // what was not written yet
	drop    *store.CheckpointSave // deletes what the store has
}

// close ends the buffer: later saves of the run are refused. It returns what is not written yet,
// which the caller has to write.
func (d *checkpointBuffer) close() (end finalState, err error) {
	d.storeLock <- struct{}{} // calls to the store have a time limit
	defer d.unlock()
	d.mu.Lock()
	d.closed = true
	if d.stored > 0 {
		end.drop = &store.CheckpointSave{BaseVersion: d.stored, Drop: true}
	}
	d.mu.Unlock()
	end.unsaved, err = d.drain()
	return end, err
}

// Delete removes the state.
func (d *checkpointBuffer) Delete(ctx context.Context, key store.Key) error {
	if key != d.key {
		return d.state.Delete(ctx, key)
	}
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isClosed() {
		return store.ErrFenced
	}
	if _, err := d.drain(); err != nil {
		return err
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer cancel()
	err := d.state.Delete(lasting, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure = err; err == nil { // also what was saved in between
		d.loaded, d.current, d.stored, d.pending, d.size = true, store.Checkpoint{}, 0, nil, 0
		clear(d.storedParts)
	}
	return err
}
