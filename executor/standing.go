package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/fermata-go/fermata/store"
)

// looked is a run as somebody found it who wants to decide on what it asks. It is advice: the decision's own transaction says whether it still holds.
type looked struct {
	store.Standing
	state   *glimpse
	dossier *dossier // once somebody wanted it
}

// look finds the run of a request, and all that has to be known of it to weigh what somebody says, in one read.
func (e *Executor) look(ctx context.Context, account, stateKey string) (looked, error) {
	stands, err := e.store.Standing(ctx, account, stateKey, dossierPaper)
	if errors.Is(err, store.ErrNotFound) {
		return looked{}, fmt.Errorf("%w: %q", ErrUnknownRun, stateKey)
	}
	if err != nil {
		return looked{}, err
	}
	key := store.Key{Account: stands.Run.Account, Run: stands.Run.ID}
	return looked{Standing: stands, state: &glimpse{sealedState: e.stateOf(), key: key}}, nil
}

// lookAgain looks once more at the same run. One that has lost its state key is over, and asks nothing any more.
func (e *Executor) lookAgain(ctx context.Context, l *looked) error {
	now, err := e.look(ctx, l.Run.Account, l.Run.StateKey)
	switch {
	case err != nil:
		return err
	case now.Run.ID != l.Run.ID:
		l.Open, l.Papers, l.At = nil, nil, now.At
	default:
		*l = now
	}
	return nil
}

// requestOf returns the request of an open interrupt, or nil if it has none.
func (l *looked) requestOf(e *Executor, interrupt string) (*requested, error) {
	paper := l.Paper(store.RequestPaper, interrupt)
	if paper == nil {
		return nil, nil
	}
	return e.readRequest(*paper)
}

// dossierOf returns what is known of the run. It is not remembered by that for others: the run may be forgotten by now, and its salt with it.
func (l *looked) dossierOf(ctx context.Context, e *Executor) (d dossier, err error) {
	key := store.Key{Account: l.Run.Account, Run: l.Run.ID}
	d, known := e.dossiers.get(key)
	paper := l.Paper(dossierPaper, l.Run.ID)
	switch {
	case known:
	case paper == nil:
		d, err = e.dossierOf(ctx, key.Account, key.Run)
	default:
		d, err = e.openDossier(*paper)
	}
	if err == nil {
		l.dossier = &d
	}
	return d, err
}

// stateFor returns the state of the run for who has taken it with the decision, if that is the one which was looked at before; or nil. Only an owner
// changes it, and each has a fence of his own: so it is, if nobody had the run when it was looked at, and nobody since.
func (l *looked) stateFor(work *store.Work) *store.Checkpoint {
	if l.Run.Status != store.Waiting || work.Run.ID != l.Run.ID || work.Run.Fence != l.Run.Fence+1 {
		return nil
	}
	return l.state.loaded.Load()
}

// glimpse is the state of a run for those who check what people say to it. It is read once: whoever decides has it at hand for the execution.
type glimpse struct {
	*sealedState
	key    store.Key
	loaded atomic.Pointer[store.Checkpoint]
}

// Load returns the state as it was looked at first.
func (g *glimpse) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if key != g.key {
		return g.sealedState.Load(ctx, key)
	}
	if g.loaded.Load() == nil {
		loaded, err := g.sealedState.Load(ctx, key)
		if err != nil {
			return loaded, err
		}
		g.loaded.CompareAndSwap(nil, &loaded)
	}
	known := g.loaded.Load()
	return store.Checkpoint{Version: known.Version, Parts: maps.Clone(known.Parts)}, nil
}
