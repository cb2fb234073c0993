package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata/store"
)

// draft is the state of a run while it is executed. What the run saves is kept back for a moment, so that steps which follow each other quickly
// cost one transaction and not one each, and the last of them goes with the rest of the run.
//
// It is written at the latest when the moment is over, before a rule allows or denies something, before an effect begins, and with the rest. A process that dies before that
// loses the work of a moment, as if it had died that much earlier: nobody outside has seen anything of it. Questions become visible with the
// rest, charges are made and effects begin after a write, and what people decided is kept elsewhere.
type draft struct {
	state  *sealedState // fenced
	key    store.Key
	moment time.Duration // none: everything is written at once

	// atStore is full while somebody is at the store. It is no mutex: whoever waits for a mutex cannot be called off.
	atStore chan struct{}

	mu      sync.Mutex // guards the rest
	known   bool       // whether whole is known
	whole   store.Checkpoint
	stored  int64             // the version in the store; that of whole counts what the run has saved
	there   map[string]bool   // the parts in the store: what came and went before it was written need not be deleted
	changed map[string]change // since the last write
	size    int               // of what was saved since then, in bytes
	timer   *time.Timer       // set while something is kept back
	closed  bool
	broken  error // of a write: nobody knows what is in the store
}

// draftSize is how much is kept back at most, in bytes. More than that is worth a transaction of its own, and must not make that of the rest
// larger than a store can take.
const draftSize = 1 << 20

// change is what became of a part; nil is gone.
type change []byte

var _ store.Checkpoints = (*draft)(nil)

// newDraft makes the draft of an execution. known is the state, if somebody has it at hand.
func (e *Executor) newDraft(work *store.Work, known *store.Checkpoint) *draft {
	d := &draft{
		state: &sealedState{e.store.Fenced(work.Lease), e}, key: store.Key{Account: work.Run.Account, Run: work.Run.ID},
		moment: e.config.SaveDelay, atStore: make(chan struct{}, 1),
	}
	d.known = work.Lease.Fence == 1 // it was created just now: nobody can have saved anything
	if known != nil {
		d.begin(store.Checkpoint{Version: known.Version, Parts: maps.Clone(known.Parts)})
	}
	return d
}

// begin takes what is in the store for what the run goes on from; the lock is held, or nobody else has the draft yet.
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

// lock waits until nobody else is at the store.
func (d *draft) lock(ctx context.Context) error {
	select {
	case d.atStore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *draft) unlock() { <-d.atStore }

// Save keeps a change until it is written.
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

// keep notes a change, and says whether there is enough to be written at once.
func (d *draft) keep(base int64, delta store.Delta) (version int64, full bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.broken != nil:
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
		d.timer = time.AfterFunc(d.moment, d.due)
	}
	return d.whole.Version, d.size > draftSize, nil
}

// due writes what was kept back for long enough. If that fails, the run hears of it with its next save.
func (d *draft) due() {
	_ = d.write(d.state.executor.life)
}

// write writes what is kept back, and returns when it is durable. After an error nothing is written any more: whether it was
// is unknown, and a second try could overwrite what somebody else did since. So it does not end with ctx once it is begun: a step that runs out of
// time, or a process that is to end, must not take along what others have done. After the end of the execution it is refused: what was
// not written by then may never be, and nothing must begin on top of it.
func (d *draft) write(ctx context.Context) error {
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	if d.isClosed() {
		return store.ErrFenced
	}
	save, err := d.take()
	if err != nil || save == nil {
		return err
	}
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

// take returns what is kept back, and keeps it no longer; nil if there is nothing.
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

// ending is what is still to be written of a state when the run rests: one of the two, or nothing where it is nil.
type ending struct {
	of    *draft
	last  *store.Save // what is kept back, not sealed yet
	spent *store.Save // what is in the store goes; for a run that is over and needs none of it
}

// sealed is what was kept back, as it goes into the store. A run that is over mostly needs none of it.
func (e ending) sealed() *store.Save {
	if e.last == nil {
		return nil
	}
	return &store.Save{Base: e.last.Base, Delta: e.of.state.seal(e.of.key, e.last.Delta)}
}

// close ends the draft: what the run saves from now on is refused. It returns what is still to be written; the caller does.
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
