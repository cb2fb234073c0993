package executor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"

	"github.com/fermata-go/fermata/store"
)

// runMeta is what is known of a run beyond its row in the store. It never changes.
type runMeta struct {
	// Salt goes into all digests of the run's data in the audit log. When it is deleted with the run, nobody can test guesses against them any more.
	Salt []byte `json:"salt,omitempty"`
	// Requester is on whose behalf it runs.
	Requester string `json:"requester,omitempty"`
	// Trace is the traceparent of the span in which the run began.
	Trace string `json:"trace,omitempty"`
}

// metaCacheSize is how many dossiers are cached. A decision needs the same one several times.
const metaCacheSize = 4096

// metaCache is a cache.
type metaCache struct {
	mu    sync.Mutex
	runs  map[store.Key]runMeta
	drops int
}

// dropped is how often a run was dropped. Who reads a dossier looks at it before that.
func (all *metaCache) dropCount() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.drops
}

func (all *metaCache) get(run store.Key) (runMeta, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d, ok := all.runs[run]
	return d, ok
}

// put adds a dossier, and drops any other if there are too many. It adds nothing if a run was dropped since it was read: it may be that one.
func (all *metaCache) put(run store.Key, d runMeta, dropped int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if dropped != all.drops {
		return
	}
	if all.runs == nil {
		all.runs = make(map[store.Key]runMeta)
	}
	for other := range all.runs {
		if len(all.runs) < metaCacheSize {
			break
		}
		delete(all.runs, other)
	}
	all.runs[run] = d
}

// drop is for a run that was deleted: its salt must not outlive it.
func (all *metaCache) drop(run store.Key) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.runs, run)
	all.drops++
}

// dossierOf returns the dossier of a run, from the cache or the store.
func (e *Executor) metaOf(ctx context.Context, account, run string) (runMeta, error) {
	key := store.Key{Account: account, Run: run}
	if d, ok := e.metaCache.get(key); ok {
		return d, nil
	}
	dropped := e.metaCache.dropCount()
	d, err := e.readMeta(ctx, account, run)
	if err == nil {
		e.metaCache.put(key, d, dropped)
	}
	return d, err
}

// newDossier makes the dossier of a run that begins.
func (e *Executor) newMeta(run, requester, trace string) (runMeta, store.DocumentChange, error) {
	d := runMeta{Salt: make([]byte, 32), Requester: requester, Trace: trace}
	rand.Read(d.Salt)
	body, err := json.Marshal(d)
	return d, store.DocumentChange{Kind: runMetaKind, ID: run, Run: run, Body: body}, err
}

// readDossier reads a dossier. A run that has none gets one.
func (e *Executor) readMeta(ctx context.Context, account, run string) (d runMeta, err error) {
	paper, err := e.store.Document(ctx, account, runMetaKind, run)
	if errors.Is(err, store.ErrNotFound) {
		d, change, err := e.newMeta(run, "", "")
		if err == nil {
			err = e.writeDocument(ctx, account, change)
		}
		if errors.Is(err, store.ErrStale) {
			return e.readMeta(ctx, account, run) // somebody was faster
		}
		return d, err
	}
	if err != nil {
		return runMeta{}, err
	}
	return e.decodeMeta(paper)
}

func (e *Executor) decodeMeta(paper store.Document) (d runMeta, err error) {
	err = e.decodeBody(paper, &d)
	return d, err
}
