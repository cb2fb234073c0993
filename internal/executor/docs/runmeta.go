package docs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"

	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/store"
)

// RunMeta is the metadata of a run beyond its row in the store. It never changes.
type RunMeta struct {
	// Salt goes into all digests of the run's data in the audit log. It is deleted with the
	// run, and then guesses cannot be tested against the digests any more.
	Salt []byte `json:"salt,omitempty"`
	// Requester is on whose behalf it runs: the caller that started it.
	Requester string `json:"requester,omitempty"`
	// Origin is what an external agent states about its run. It replaces nothing that the server
	// knows: Requester is the agent.
	Origin origin.Origin `json:"origin,omitzero"`
	// EndUser is the person that the agent of the run talks to; "" for none.
	EndUser string `json:"end_user,omitempty"`
	// Trace is the traceparent of the span in which the run began.
	Trace string `json:"trace,omitempty"`
}

// metaCacheSize is how many metadata records are cached. A decision needs the same one several
// times.
const metaCacheSize = 4096

// MetaCache caches the metadata of runs. It is safe for concurrent use.
type MetaCache struct {
	mu    sync.Mutex
	runs  map[store.Key]RunMeta
	drops int
}

// DropCount returns how often a run was dropped. It must be read before the metadata that are put.
func (all *MetaCache) DropCount() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.drops
}

// Get returns the cached metadata of a run.
func (all *MetaCache) Get(run store.Key) (RunMeta, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d, ok := all.runs[run]
	return d, ok
}

// Put adds metadata, and drops any others if there are too many. It adds nothing if a run was
// dropped since they were read: it may be that run.
func (all *MetaCache) Put(run store.Key, d RunMeta, dropped int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if dropped != all.drops {
		return
	}
	if all.runs == nil {
		all.runs = make(map[store.Key]RunMeta)
	}
	for other := range all.runs {
		if len(all.runs) < metaCacheSize {
			break
		}
		delete(all.runs, other)
	}
	all.runs[run] = d
}

// Drop removes a deleted run: its salt must not outlive it.
func (all *MetaCache) Drop(run store.Key) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.runs, run)
	all.drops++
}

// MetaOf returns the metadata of a run, from the cache or the store.
func (ds *Docs) MetaOf(ctx context.Context, account, run string) (RunMeta, error) {
	key := store.Key{Account: account, Run: run}
	if d, ok := ds.MetaCache.Get(key); ok {
		return d, nil
	}
	dropped := ds.MetaCache.DropCount()
	d, err := ds.ReadMeta(ctx, account, run)
	if err == nil {
		ds.MetaCache.Put(key, d, dropped)
	}
	return d, err
}

// NewMeta creates the metadata of a new run, with a new salt.
func (ds *Docs) NewMeta(run string, d RunMeta) (RunMeta, store.DocumentChange, error) {
	d.Salt = make([]byte, 32)
	rand.Read(d.Salt)
	body, err := json.Marshal(d)
	return d, store.DocumentChange{Kind: RunMetaKind, ID: run, Run: run, Body: body}, err
}

// ReadMeta reads the metadata of a run. A run without metadata gets some.
func (ds *Docs) ReadMeta(ctx context.Context, account, run string) (d RunMeta, err error) {
	paper, err := ds.Store.Document(ctx, account, RunMetaKind, run)
	if errors.Is(err, store.ErrNotFound) {
		d, change, err := ds.NewMeta(run, RunMeta{})
		if err == nil {
			err = ds.WriteDocument(ctx, account, change)
		}
		if errors.Is(err, store.ErrStale) {
			return ds.ReadMeta(ctx, account, run) // another process was faster
		}
		return d, err
	}
	if err != nil {
		return RunMeta{}, err
	}
	return ds.DecodeMeta(paper)
}

// DecodeMeta decodes the document of metadata.
func (ds *Docs) DecodeMeta(paper store.Document) (d RunMeta, err error) {
	err = ds.DecodeBody(paper, &d)
	return d, err
}
