package executor

import (
	"context"
	"sync"

	"github.com/fermata-go/fermata/store"
)

// rememberedDossiers is how many dossiers a process has at hand. A decision asks for the same one several times.
const rememberedDossiers = 4096

// dossiers are those at hand. A dossier never changes once it is written, so whoever has it need not ask again.
type dossiers struct {
	mu   sync.Mutex
	runs map[store.Key]dossier
}

func (all *dossiers) get(run store.Key) (dossier, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	d, ok := all.runs[run]
	return d, ok
}

// put keeps a dossier at hand, in the place of any other if there are many.
func (all *dossiers) put(run store.Key, d dossier) {
	all.mu.Lock()
	defer all.mu.Unlock()
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

// drop is for a run that is forgotten: its salt must not outlive it.
func (all *dossiers) drop(run store.Key) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.runs, run)
}

// dossierOf returns what is known of a run. One that began without gets one.
func (e *Executor) dossierOf(ctx context.Context, account, run string) (dossier, error) {
	key := store.Key{Account: account, Run: run}
	if d, ok := e.dossiers.get(key); ok {
		return d, nil
	}
	d, err := e.readDossier(ctx, account, run)
	if err == nil {
		e.dossiers.put(key, d)
	}
	return d, err
}
