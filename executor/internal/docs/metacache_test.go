package docs

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/store"
)

// However many runs a process meets, it has some of their dossiers at hand, and never one that was forgotten.
func TestDossiers_AreAtHandForSome(t *testing.T) {
	var all MetaCache
	last := store.Key{}
	for n := range 3 * metaCacheSize {
		last = store.Key{Account: "acme", Run: fmt.Sprint("run-", n)}
		all.Put(last, RunMeta{Requester: last.Run}, 0)
	}
	if len(all.runs) != metaCacheSize {
		t.Errorf("%d are at hand, not %d", len(all.runs), metaCacheSize)
	}
	if d, ok := all.Get(last); !ok || d.Requester != last.Run {
		t.Errorf("of the last run, %+v %t is at hand", d, ok)
	}
	if _, ok := all.Get(store.Key{Account: "other", Run: last.Run}); ok {
		t.Error("another account has it, too")
	}
	all.Drop(last)
	if _, ok := all.Get(last); ok {
		t.Error("what was forgotten is at hand")
	}
	all.Put(last, RunMeta{}, 0) // by somebody who read it before
	if _, ok := all.Get(last); ok {
		t.Error("what was forgotten is at hand again")
	}
	if all.Put(last, RunMeta{}, all.DropCount()); len(all.runs) != metaCacheSize {
		t.Error("what was read after that is not at hand")
	}
}
