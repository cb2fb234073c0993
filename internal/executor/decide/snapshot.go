package decide

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/store"
)

// runSnapshot is a run as it was read for a decision. It may be outdated when the decision is
// recorded; that transaction checks everything again.
type runSnapshot struct {
	store.RunSnapshot
	state *cachedState
	Meta  *docs.RunMeta // nil until it was needed
}

// loadSnapshot reads a run and everything else that a decision on it needs, in one call to the
// store.
func (dc *Decider) loadSnapshot(ctx context.Context, account, stateKey string) (runSnapshot, error) {
	stands, err := dc.store.RunSnapshot(ctx, account, stateKey, docs.RunMetaKind)
	if errors.Is(err, store.ErrNotFound) {
		return runSnapshot{}, fmt.Errorf("%w: %q", errs.ErrRunNotFound, stateKey)
	}
	if err != nil {
		return runSnapshot{}, err
	}
	key := store.Key{Account: stands.Run.Account, Run: stands.Run.ID}
	return runSnapshot{RunSnapshot: stands, state: &cachedState{Checkpoints: dc.store, key: key}}, nil
}

// reloadSnapshot reads the same run again. If another run has its state key by now, the run is over
// and has no open requests.
func (dc *Decider) reloadSnapshot(ctx context.Context, l *runSnapshot) error {
	now, err := dc.loadSnapshot(ctx, l.Run.Account, l.Run.StateKey)
	switch {
	case err != nil:
		return err
	case now.Run.ID != l.Run.ID:
		l.Open, l.Documents, l.ReadAt = nil, nil, now.ReadAt
	default:
		*l = now
	}
	return nil
}

// Load reads the run whose requests are answered. Without a state key the requests name it; the
// state key is set then.
func (dc *Decider) Load(ctx context.Context, request *Request) (*runSnapshot, error) {
	if request.StateKey == "" && len(request.Targets) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(request.Targets)))
		item, err := dc.store.InboxItem(ctx, request.Account, first)
		if err != nil {
			return nil, err
		}
		request.StateKey = item.StateKey
	}
	l, err := dc.loadSnapshot(ctx, request.Account, request.StateKey)
	if err == nil {
		err = dc.loadOriginalRun(ctx, &l, request.Targets)
	}
	return &l, err
}

// loadOriginalRun switches to the run that a request belongs to if another run has its state key by
// now. That run is over: no answer counts, and the store knows how the request ended.
func (dc *Decider) loadOriginalRun(ctx context.Context, l *runSnapshot, targets map[string]Answer) error {
	for id := range targets {
		if slices.ContainsFunc(l.Open, func(i store.Interrupt) bool { return i.ID == id }) {
			continue
		}
		item, err := dc.store.InboxItem(ctx, l.Run.Account, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return err
		case item.Run != l.Run.ID && item.StateKey == l.Run.StateKey && item.State != store.InterruptPending:
			l.Run.ID, l.Run.Provider, l.Run.Graph = item.Run, item.Provider, item.Graph
			l.Open, l.Documents, l.Meta = nil, nil, nil
			return nil
		}
	}
	return nil
}

// requestDoc returns the request of an open interrupt. Every interrupt has one; without it no
// person is eligible to decide.
func (l *runSnapshot) requestDoc(e *Decider, interrupt string) (*docs.Request, error) {
	document := l.Document(store.RequestDocument, interrupt)
	if document == nil {
		//mutate:request-document-required
		return nil, e.store.Report(l.Run.Account, string(store.RequestDocument), interrupt, errors.New("it is gone"))
	}
	return e.docs.DecodeRequest(*document)
}

// metaOf returns the metadata of the run. It does not put them into the cache: the run may have
// been deleted since, and the salt must not outlive it.
func (l *runSnapshot) metaOf(ctx context.Context, e *Decider) (d docs.RunMeta, err error) {
	key := store.Key{Account: l.Run.Account, Run: l.Run.ID}
	d, known := e.docs.MetaCache.Get(key)
	document := l.Document(docs.RunMetaKind, l.Run.ID)
	switch {
	case known:
	case document == nil:
		d, err = e.docs.MetaOf(ctx, key.Account, key.Run)
	default:
		d, err = e.docs.DecodeMeta(*document)
	}
	if err == nil {
		l.Meta = &d //mutate:snapshot-not-cached
	}
	return d, err
}

// ReusableState returns the checkpoint that was read before the decision if the execution after it
// can begin with that; otherwise nil. Only the owner of a run changes its checkpoint, and every
// owner has its own fence. So the checkpoint is unchanged if the run had no owner when it was read
// and the fence has grown by one.
func (l *runSnapshot) ReusableState(work *store.ClaimedRun) *store.Checkpoint {
	//mutate:snapshot-fence-matches
	if l.Run.Status != store.StatusWaiting || work.Run.ID != l.Run.ID || work.Run.Fence != l.Run.Fence+1 {
		return nil
	}
	return l.state.loaded.Load()
}

// cachedState is the checkpoint of a run for checking an answer. It is read once, when it is
// needed, and can be used for the execution after the decision.
type cachedState struct {
	store.Checkpoints
	key    store.Key
	loaded atomic.Pointer[store.Checkpoint]
}

// Load returns the state as it was read first.
func (g *cachedState) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if key != g.key {
		return g.Checkpoints.Load(ctx, key)
	}
	if g.loaded.Load() == nil {
		loaded, err := g.Checkpoints.Load(ctx, key)
		if err != nil {
			return loaded, err
		}
		g.loaded.CompareAndSwap(nil, &loaded)
	}
	known := g.loaded.Load()
	return store.Checkpoint{Version: known.Version, Parts: maps.Clone(known.Parts)}, nil
}
