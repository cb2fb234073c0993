package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/store"
)

// beginTracker tracks the effects that an execution wanted to begin, as far as that matters for
// their ledger lines.
type beginTracker struct {
	mu     sync.Mutex
	states map[effectKey]beginState
}

// effectKey names a line of the ledger in its account.
type effectKey struct {
	interrupt string
	number    int
}

// beginState is how far the begin of an effect has come. It only grows.
type beginState int

const (
	// the line was sent, and it is unknown whether it was written
	beginUnconfirmed beginState = iota + 1
	// the execution has the confirmation that the effect began, and has called it or will
	beginConfirmed
)

// markUnconfirmed notes that there was no answer.
func (b *beginTracker) markUnconfirmed(line effectKey) { b.advance(line, beginUnconfirmed) }

// markConfirmed records that the execution gets the confirmation, and returns how far
// it had come.
func (b *beginTracker) markConfirmed(line effectKey) beginState {
	return b.advance(line, beginConfirmed)
}

func (b *beginTracker) advance(line effectKey, to beginState) (from beginState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.states == nil {
		b.states = make(map[effectKey]beginState)
	}
	from = b.states[line]
	b.states[line] = max(from, to)
	return from
}

func (b *beginTracker) isUnconfirmed(line effectKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states[line] == beginUnconfirmed
}

// tryBegin writes the ledger entry, and retries while the store is unavailable. Without an answer
// the entry may have been written. It would look as if the effect had been called, and a person
// would be asked about something that certainly did not happen. So tryBegin sends it again. An
// entry that already exists counts as begun now if this execution wrote it and has not confirmed
// it:
//
//   - It has the fence of this execution. The store writes the fence of the lease that it has just
//     checked; each claim of a run has its own fence; and each claim has one execution, with one
//     owner, in this process.
//   - This process sent it and got no answer. (A store that was restored from a backup while others
//     worked on it may issue a fence twice.)
//   - The execution has no confirmation for it: that is recorded before it gets one. An execution
//     calls an effect only after BeginEffect confirmed it.
//
// So the effect was not called. No other process calls it either: the store has found the lease
// valid once more, and a process that takes the run over finds the entry with a foreign fence.
func (o *executionOwner) tryBegin(ctx context.Context, effect store.NewEffect) (line store.Effect, begun bool, err error) {
	name, first := effectKey{effect.Interrupt, effect.Attempt}, time.Now()
	for pause := background.MinBackoff; ; pause = min(2*pause, background.MaxBackoff) {
		sent := time.Now()
		line, begun, err = o.worker.store.BeginEffect(ctx, o.lease, effect)
		begun = begun || err == nil && o.isOwnUnconfirmed(name, effect, line)
		if err == nil && begun {
			err = o.checkLease(ctx, sent)
		}
		if err == nil || isEffectRefusal(err) {
			break
		}
		if o.tracker.markUnconfirmed(name); time.Since(first) > background.CommitTimeout || !o.worker.background.WaitForStore(ctx, pause) {
			break
		}
	}
	if err != nil {
		return store.Effect{}, false, err
	}
	if begun && o.tracker.markConfirmed(name) == beginConfirmed {
		begun = false
	}
	return line, begun, nil
}

// isOwnUnconfirmed reports whether a line that is there already was sent from here, without an
// answer.
func (o *executionOwner) isOwnUnconfirmed(name effectKey, effect store.NewEffect, line store.Effect) bool {
	//mutate:effect-same-fence
	return line.State == store.EffectStarted && line.Fence == o.lease.Fence && line.ActionDigest == effect.ActionDigest && line.IdempotencyKey == effect.IdempotencyKey && o.tracker.isUnconfirmed(name)
}

// isEffectRefusal reports whether the store refused the effect, so that nothing was written.
func isEffectRefusal(err error) bool {
	for _, no := range []error{store.ErrFenced, store.ErrNotApproved, store.ErrStale, store.ErrInvalid, store.ErrFull} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// checkLease makes sure that no other process has taken the run over while the reply was on its
// way: it may have asked a person, who answered that nothing happened.
func (o *executionOwner) checkLease(ctx context.Context, sent time.Time) error {
	if storeclock.Elapsed(sent, time.Now()) < o.worker.config.Lease/3*2 {
		return nil
	}
	return o.worker.store.Renew(ctx, o.lease, o.worker.config.Lease) //mutate:effect-renews-lease
}
