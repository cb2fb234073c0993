package executor

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// asItGoes is a store that calls a function after run metadata was read or written, and before the
// response arrives.
type asItGoes struct {
	store.Store
	happens func()
}

func (a *asItGoes) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	defer a.happens()
	return a.Store.Document(ctx, account, kind, id)
}

func (a *asItGoes) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	defer a.happens()
	return a.Store.Create(ctx, run)
}

// A run is deleted while its metadata is read, or just after it was created: the metadata does not
// enter the cache after that.
func TestMetaCache_RunDeletedMeanwhileIsNotCached(t *testing.T) {
	sealed, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	s := &asItGoes{Store: memory.NewStore(nil)}
	e, err := New(Config{Store: s, Sealer: sealed, Providers: []provider.Provider{idle{}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop(context.Background())
	s.happens = func() { e.docs.MetaCache.Drop(store.Key{Account: "acme", Run: "any"}) }
	if _, err = e.Run(t.Context(), RunRequest{Account: "acme", StateKey: "k", Graph: "idle:it", Input: []byte(`1`), Wait: -1}); !errors.Is(err, errs.ErrPending) {
		t.Fatal(err)
	}
	run, err := s.Get(t.Context(), "acme", "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.docs.MetaCache.Get(store.Key{Account: "acme", Run: run.ID}); ok {
		t.Error("the metadata is cached after the start")
	}
	if d, err := e.docs.MetaOf(t.Context(), "acme", run.ID); err != nil || d.Salt == nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, ok := e.docs.MetaCache.Get(store.Key{Account: "acme", Run: run.ID}); ok {
		t.Error("the metadata is cached after the read")
	}
}

// idle is a provider that parks its runs.
type idle struct{ provider.Provider }

func (idle) Name() string { return "idle" }

func (idle) Graphs() []provider.Graph { return []provider.Graph{{Name: "it"}} }

func (idle) Capabilities() provider.Capabilities { return provider.Capabilities{} }

func (idle) Execute(context.Context, provider.Execution) (provider.Result, error) {
	return provider.Result{}, provider.ErrPark
}
