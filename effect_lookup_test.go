package fermata_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// fakeLookup is a lookup that records its calls and fences.
type fakeLookup struct {
	receipt string
	found   bool
	err     error
	fences  []int
	keys    []string
}

func (a *fakeLookup) lookup(ctx context.Context, key string) (string, bool, error) {
	a.fences, a.keys = append(a.fences, fermata.Fence(ctx)), append(a.keys, key)
	return a.receipt, a.found, a.err
}

func TestI4_EffectInDoubtFollowsTheLookupResult(t *testing.T) {
	down := errors.New("the target is down")
	for _, test := range []struct {
		name    string
		target  fakeLookup
		options []fermata.EffectOption
		out     string
		calls   int
		asks    bool
	}{
		{"it is there", fakeLookup{receipt: "dropped, says the target", found: true}, nil, "dropped, says the target", 1, false},
		{"found, and fenced", fakeLookup{receipt: "dropped, says the target", found: true}, []fermata.EffectOption{fermata.Fenced()}, "dropped, says the target", 1, false},
		{"not found, and calls in transit will be rejected", fakeLookup{}, []fermata.EffectOption{fermata.Fenced()}, "dropped users", 2, false},
		{"not found yet", fakeLookup{}, nil, "", 1, true},
		{"the target cannot tell", fakeLookup{err: down}, []fermata.EffectOption{fermata.Fenced()}, "", 1, true},
		{"a result with an error does not count", fakeLookup{receipt: "x", found: true, err: down}, nil, "", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d database
			r := crashing(t, &d, append(test.options, fermata.Lookup(test.target.lookup))...)
			if len(test.target.keys) != 0 {
				t.Fatal("the target is queried about an effect that is not in doubt")
			}
			out, err := r.resume(graph.TakeOver())
			if test.asks {
				if kind := waitsFor(t, err).Kind; kind != fermata.EffectInDoubt.Name() || d.n != test.calls {
					t.Fatalf("it asks for %s, after %d calls", kind, d.n)
				}
			} else if err != nil || out != test.out || d.n != test.calls {
				t.Fatalf("got %q, %v, %d calls", out, err, d.n)
			}
			if len(test.target.keys) != 1 || test.target.keys[0] != d.keys[0] {
				t.Errorf("the target was queried for %q, and called with %q", test.target.keys, d.keys)
			}
		})
	}
}

// A person's resolution takes precedence, even if the target can answer again later.
func TestI4_PersonsResolutionOverridesLookup(t *testing.T) {
	var d database
	target := fakeLookup{err: errors.New("the target is down")}
	r := crashing(t, &d, fermata.Lookup(target.lookup), fermata.Fenced())
	_, err := r.resume(graph.TakeOver())
	ic := waitsFor(t, err)
	target.err = nil // the lookup finds nothing, so the effect would be repeated
	out, err := r.resume(graph.Answer(ic.ID, fermata.EffectResolution{Happened: true, Receipt: []byte(`"dropped by hand"`)}))
	if err != nil || out != "dropped by hand" || d.n != 1 || len(target.keys) != 1 {
		t.Fatalf("got %q, %v, %d calls, %d lookups", out, err, d.n, len(target.keys))
	}
}

// The lookup has the fence of the next attempt: a late first call is rejected from then on.
func TestI4_LookupRaisesTheFence(t *testing.T) {
	var d database
	var target fakeLookup
	var fences []int
	r := newRun(t, func(ctx context.Context) (string, error) {
		if fermata.Fence(ctx) != 0 {
			t.Error("there is a fence outside an effect")
		}
		ok, err := fermata.Approve(ctx, fermata.Action[drop]{Name: "drop-table", Args: drop{Table: "users"}})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, ok, func(ctx context.Context, args drop, key string) (string, error) {
			fences = append(fences, fermata.Fence(ctx))
			return d.drop(ctx, args, key)
		}, fermata.Lookup(target.lookup), fermata.Fenced())
	})
	d.fail = func() error { return errors.New("timeout") }
	_, err := r.start()
	if _, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove}); err == nil {
		t.Fatal("the node does not see the error")
	}
	if _, err = r.resume(); err == nil { // the second attempt fails as well
		t.Fatal("the node does not see the error")
	}
	d.fail = nil
	if out, err := r.resume(); err != nil || out != "dropped users" {
		t.Fatalf("got %q, %v", out, err)
	}
	if len(fences) != 3 || fences[0] != 1 || fences[1] != 2 || fences[2] != 3 || len(target.fences) != 2 || target.fences[0] != 2 || target.fences[1] != 3 {
		t.Errorf("called with %v, looked up with %v", fences, target.fences)
	}
}

func TestEffect_LookupReceiptOfWrongTypeReturnsError(t *testing.T) {
	var d database
	r := crashing(t, &d, fermata.Lookup(func(context.Context, string) (int, bool, error) { return 7, true, nil }))
	if out, err := r.resume(graph.TakeOver()); err == nil || d.n != 1 {
		t.Fatalf("got %q, %d calls", out, d.n)
	}
}
