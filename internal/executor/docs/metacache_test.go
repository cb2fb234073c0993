package docs

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// The cache is bounded, and never contains a run that was dropped.
func TestMetaCache_IsBoundedAndForgetsDroppedRuns(t *testing.T) {
	var all MetaCache
	last := store.Key{}
	for n := range 3 * metaCacheSize {
		last = store.Key{Account: "acme", Run: fmt.Sprint("run-", n)}
		all.Put(last, RunMeta{Requester: last.Run}, 0)
	}
	if len(all.runs) != metaCacheSize {
		t.Errorf("%d runs are cached, want %d", len(all.runs), metaCacheSize)
	}
	if d, ok := all.Get(last); !ok || d.Requester != last.Run {
		t.Errorf("the last run is cached as %+v, %t", d, ok)
	}
	if _, ok := all.Get(store.Key{Account: "other", Run: last.Run}); ok {
		t.Error("the run is cached for another account")
	}
	all.Drop(last)
	if _, ok := all.Get(last); ok {
		t.Error("a dropped run is cached")
	}
	all.Put(last, RunMeta{}, 0) // by a caller that read it before the drop
	if _, ok := all.Get(last); ok {
		t.Error("a dropped run is cached again")
	}
	if all.Put(last, RunMeta{}, all.DropCount()); len(all.runs) != metaCacheSize {
		t.Error("a run that was read after the drop is not cached")
	}
}
