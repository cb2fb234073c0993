package executor_test

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// What the log says, what runs know and what was done agree; and where the log was not told, it shows.
func TestReconcile_FindsWhatDoesNotAgree(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		startAs(t, e, "req")
		for _, who := range []string{"bob", "eve"} {
			if _, err := says(t, e, who, "by "+who, yes); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		if _, err := audit.Verify(t.Context(), audit.Over(s), "acme", audit.Against{}, t.Output()); err != nil {
			t.Fatal(err)
		}
		// An effect of which the log knows nothing, by somebody who writes to the store without it.
		lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "drop", Owner: "mallory", Lease: 1e12})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Begin(t.Context(), lease, store.NewEffect{Interrupt: "x", Number: 1, Digest: "d", Allowed: &store.Allowed{By: "mallory"}}); err != nil {
			t.Fatal(err)
		}
		found, err := e.Reconcile(t.Context(), "acme")
		if err != nil || !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Severity == audit.Page }) {
			t.Errorf("%+v, %v", found, err)
		}
	})
}
