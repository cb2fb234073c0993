package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// draft is the checkpoint of a run while it is executed. It collects what the run saves for Config.SaveDelay, so that steps which follow each other
// quickly cost one transaction together; the last of them are written in the transaction in which the run comes to rest.
//
// Collected saves are written when the delay is over, before a policy allows or denies an action, before an effect begins, and when the run comes to
// rest. A process that dies before that loses them, as if it had died that much earlier. Nobody can have seen them: questions become visible when the run
// comes to rest, counters are charged and effects begin after a write, and decisions are stored elsewhere.
type draft struct {
	state  *sealedState // fenced
	key    store.Key
	moment time.Duration // Config.SaveDelay; 0 or less: each save is written at once

	// atStore is a lock for calls to the store. It is a channel because waiting for it must end with the caller's context.
	atStore chan struct{}

	mu      sync.Mutex        // guards the rest
	known   bool              // whole was read, or is known to be empty
	whole   store.Checkpoint  // as the run sees it: with what is not written yet
	stored  int64             // the version in the store; whole.Version also counts saves that are not written yet
	there   map[string]bool   // the parts in the store: a part that came and went before a write need not be deleted there
	changed map[string]change // since the last write
	size    int               // of changed, in bytes
	timer   *time.Timer       // set while something is to be written
	closed  bool              // the execution is over
	broken  error             // of a write that failed: it is unknown what the store has
}

// draftSize is how many bytes are collected at most. More than that is worth a transaction of its own, and the transaction in which the run comes to
// rest must not become larger than a store can take.
const draftSize = 1 << 20

// change is the new value of a part; nil if it was deleted.
type change []byte

var _ store.Checkpoints = (*draft)(nil)

// newDraft makes the draft of an execution. known is the state in the store, if the caller has read it.
func (e *Executor) newDraft(work *store.Work, known *store.Checkpoint) *draft {
	d := &draft{
		//mutate:provider-store-fenced
		state: &sealedState{e.store.Fenced(work.Lease), e}, key: store.Key{Account: work.Run.Account, Run: work.Run.ID},
		moment: e.config.SaveDelay, atStore: make(chan struct{}, 1),
	}
	d.known = work.Lease.Fence == 1 // it was created just now: nobody can have saved anything
	if known != nil {
		d.begin(store.Checkpoint{Version: known.Version, Parts: maps.Clone(known.Parts)})
	}
	return d
}

// begin sets what the store has. It is called with the lock held, or before anybody else has the draft.
func (d *draft) begin(stored store.Checkpoint) {
	d.known, d.whole, d.stored = true, stored, stored.Version
	d.there = make(map[string]bool, len(stored.Parts))
	for name := range stored.Parts {
		d.there[name] = true
	}
}

// Load returns the state as the run knows it.
func (d *draft) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if key != d.key {
		return d.state.Load(ctx, key)
	}
	if err := d.look(ctx); err != nil {
		return store.Checkpoint{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.whole.Version == 0 {
		return store.Checkpoint{}, store.ErrNotFound
	}
	return store.Checkpoint{Version: d.whole.Version, Parts: maps.Clone(d.whole.Parts)}, nil
}

// look reads the state, unless it is known. Nobody else can change it as long as the lease is good.
func (d *draft) look(ctx context.Context) error {
	if d.isKnown() {
		return nil
	}
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isKnown() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, settleTimeout) // close waits for it
	defer cancel()
	loaded, err := d.state.Load(bounded, d.key)
	if err != nil && !isNotFound(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(loaded)
	return nil
}

func (d *draft) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

func (d *draft) isKnown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// lock is for atStore.
func (d *draft) lock(ctx context.Context) error {
	select {
	case d.atStore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *draft) unlock() { <-d.atStore }

// Save adds a change to the draft. It is durable after the next write.
func (d *draft) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if key != d.key {
		return d.state.Save(ctx, key, base, delta)
	}
	if err := d.look(ctx); err != nil {
		return 0, err
	}
	version, full, err := d.keep(base, delta)
	if err == nil && (full || d.moment <= 0) {
		err = d.write(ctx)
	}
	return version, err
}

// keep adds a change, and reports whether so much is collected that it should be written at once.
func (d *draft) keep(base int64, delta store.Delta) (version int64, full bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.broken != nil: //mutate:buffer-broken-after-unknown-write
		return 0, false, d.broken
	case d.closed:
		return 0, false, store.ErrFenced
	case base != d.whole.Version:
		return 0, false, store.ErrStale
	}
	if d.changed == nil {
		d.changed = make(map[string]change)
	}
	if d.whole.Parts == nil {
		d.whole.Parts = make(map[string][]byte)
	}
	for _, name := range delta.Delete {
		d.changed[name] = nil
		delete(d.whole.Parts, name)
	}
	for _, part := range delta.Put {
		data := slices.Clip(part.Data)
		if data == nil {
			data = []byte{}
		}
		d.changed[part.Name], d.whole.Parts[part.Name] = data, data
		d.size += len(data)
	}
	d.whole.Version++
	if d.timer == nil && d.moment > 0 {
		d.timer = time.AfterFunc(d.moment, d.due) //mutate:buffer-timer
	}
	return d.whole.Version, d.size > draftSize, nil
}

// due is called by the timer. If the write fails, the next save of the run returns the error.
func (d *draft) due() {
	_ = d.write(d.state.executor.life)
}

// write writes what was collected, and returns when it is durable. After an error nothing is written any more: it is unknown whether the store has it,
// and a second try could overwrite what another owner wrote since. For the same reason a write does not end with ctx once it has begun: the timeout of one
// step must not make the draft unusable for the others. After the end of the execution write returns ErrFenced, so that no effect begins whose cause may
// never be saved.
func (d *draft) write(ctx context.Context) error {
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isClosed() { //mutate:buffer-closed-guard
		return store.ErrFenced
	}
	save, err := d.take()
	if err != nil || save == nil {
		return err
	}
	//mutate:buffer-write-ignores-cancel
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	version, err := d.state.Save(lasting, d.key, save.Base, save.Delta)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken = err; err == nil {
		d.stored = version
	}
	return err
}

// take returns what is to be written, and takes it out of the draft; nil if there is nothing.
func (d *draft) take() (*store.Save, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.broken != nil || d.changed == nil {
		return nil, d.broken
	}
	save := &store.Save{Base: d.stored}
	if d.there == nil {
		d.there = make(map[string]bool)
	}
	for _, name := range slices.Sorted(maps.Keys(d.changed)) {
		data := d.changed[name]
		switch {
		case data != nil:
			save.Delta.Put = append(save.Delta.Put, store.Part{Name: name, Data: data})
		case d.there[name]:
			save.Delta.Delete = append(save.Delta.Delete, name)
		}
		d.there[name] = data != nil
	}
	d.changed, d.size = nil, 0
	return save, nil
}

// ending is what can become of the state in the store when the run comes to rest: last is added to it, or it is deleted by spent. Either is nil if there is
// nothing to do for it.
type ending struct {
	of    *draft
	last  *store.Save // what was not written yet; not sealed
	spent *store.Save // deletes what the store has
}

// sealed seals last. It is not done before it is known to be needed: the state of a completed run mostly is not.
func (e ending) sealed() *store.Save {
	if e.last == nil {
		return nil
	}
	return &store.Save{Base: e.last.Base, Delta: e.of.state.seal(e.of.key, e.last.Delta)}
}

// close ends the draft: later saves of the run are refused. It returns what is not written yet, which the caller has to write.
func (d *draft) close() (end ending, err error) {
	d.atStore <- struct{}{} // whoever is at the store has a time limit
	defer d.unlock()
	d.mu.Lock()
	d.closed, end.of = true, d
	if d.stored > 0 {
		end.spent = &store.Save{Base: d.stored, Drop: true}
	}
	d.mu.Unlock()
	end.last, err = d.take()
	return end, err
}

// Delete removes the state.
func (d *draft) Delete(ctx context.Context, key store.Key) error {
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
	if _, err := d.take(); err != nil {
		return err
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := d.state.Delete(lasting, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken = err; err == nil { // also what was saved meanwhile
		d.known, d.whole, d.stored, d.changed, d.size = true, store.Checkpoint{}, 0, nil, 0
		clear(d.there)
	}
	return err
}
