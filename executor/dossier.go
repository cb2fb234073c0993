package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/fermata-go/fermata/store"
)

// dossier is what is known of a run beyond its row in the store. It never changes.
type dossier struct {
	// Salt goes into all digests of the run's data in the audit log. When it is deleted with the run, nobody can test guesses against them any more.
	Salt []byte `json:"salt,omitempty"`
	// Requester is on whose behalf it runs.
	Requester string `json:"requester,omitempty"`
	// Trace is the traceparent of the span in which the run began.
	Trace string `json:"trace,omitempty"`
}

// rememberedDossiers is how many dossiers are cached. A decision needs the same one several times.
const rememberedDossiers = 4096

// dossiers is a cache.
type dossiers struct {
	mu    sync.Mutex
	runs  map[store.Key]dossier
	drops int
}

// dropped is how often a run was dropped. Who reads a dossier looks at it before that.
func (all *dossiers) dropped() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.drops
}

func (all *dossiers) get(run store.Key) (dossier, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d, ok := all.runs[run]
	return d, ok
}

// put adds a dossier, and drops any other if there are too many. It adds nothing if a run was dropped since it was read: it may be that one.
func (all *dossiers) put(run store.Key, d dossier, dropped int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if dropped != all.drops {
		return
	}
	if all.runs == nil {
		all.runs = make(map[store.Key]dossier)
	}
	for other := range all.runs {
		if len(all.runs) < rememberedDossiers {
			break
		}
		delete(all.runs, other)
	}
	all.runs[run] = d
}

// drop is for a run that was deleted: its salt must not outlive it.
func (all *dossiers) drop(run store.Key) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.runs, run)
	all.drops++
}

// dossierOf returns the dossier of a run, from the cache or the store.
func (e *Executor) dossierOf(ctx context.Context, account, run string) (dossier, error) {
	key := store.Key{Account: account, Run: run}
	if d, ok := e.dossiers.get(key); ok {
		return d, nil
	}
	dropped := e.dossiers.dropped()
	d, err := e.readDossier(ctx, account, run)
	if err == nil {
		e.dossiers.put(key, d, dropped)
	}
	return d, err
}

// newDossier makes the dossier of a run that begins.
func (e *Executor) newDossier(ctx context.Context, account, run, requester string) (dossier, store.PaperChange, error) {
	d := dossier{Salt: make([]byte, 32), Requester: requester, Trace: traceParent(ctx)}
	rand.Read(d.Salt)
	body, err := e.sealPaper(account, dossierPaper, run, d)
	return d, store.PaperChange{Kind: dossierPaper, ID: run, Run: run, Body: body}, err
}

// readDossier reads a dossier. A run that has none gets one.
func (e *Executor) readDossier(ctx context.Context, account, run string) (d dossier, err error) {
	paper, err := e.store.Paper(ctx, account, dossierPaper, run)
	if errors.Is(err, store.ErrNotFound) {
		d, change, err := e.newDossier(context.Background(), account, run, "")
		if err == nil {
			err = e.amend(ctx, account, change)
		}
		if errors.Is(err, store.ErrStale) {
			return e.readDossier(ctx, account, run) // somebody was faster
		}
		return d, err
	}
	if err != nil {
		return dossier{}, err
	}
	return e.openDossier(paper)
}

func (e *Executor) openDossier(paper store.Paper) (d dossier, err error) {
	err = e.readBody(paper, &d)
	return d, err
}
