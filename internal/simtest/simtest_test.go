package simtest_test

import (
	"errors"
	"testing"

	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

func TestTarget_DuplicatesByKind(t *testing.T) {
	for kind, want := range map[simtest.TargetKind]int{simtest.Idempotent: 1, simtest.Fencing: 2, simtest.NonIdempotent: 2} {
		var target simtest.Target[string]
		for range 2 {
			if _, err := target.Call(kind, "key", 1, "pay"); err != nil {
				t.Fatal(err)
			}
		}
		if done := len(target.Log()); done != want {
			t.Errorf("%s: %d calls were executed, want %d", kind, done, want)
		}
		target.Query("key", 2)
		if _, err := target.Call(simtest.Fencing, "key", 1, "pay"); !errors.Is(err, simtest.ErrRefused) {
			t.Errorf("%s: a call below the fence returns %v", kind, err)
		}
	}
}

func TestCheckHistory_FindsViolations(t *testing.T) {
	valid := func() store.History {
		return store.History{
			Run: store.Run{Fence: 1, StateKey: "key"},
			Events: []store.Event{
				{Seq: 1, Kind: store.EventCreated}, {Seq: 2, Kind: store.EventAsked, Interrupt: "i"}, {Seq: 3, Kind: store.EventDecided, Interrupt: "i"},
				{Seq: 4, Kind: store.EventEffectBegun, Interrupt: "i"}, {Seq: 5, Kind: store.EventCompleted},
			},
			Effects: []store.Effect{{NewEffect: store.NewEffect{Interrupt: "i", IdempotencyKey: "k"}, State: store.EffectSucceeded, Fence: 1}},
		}
	}
	executed := func(key string) bool { return key == "k" }
	if found := simtest.CheckHistory(valid(), executed); len(found) != 0 {
		t.Errorf("a valid history has %v", found)
	}
	for name, test := range map[string]struct {
		change func(h *store.History)
		want   simtest.Invariant
	}{
		"an event is missing":             {func(h *store.History) { h.Events = h.Events[1:] }, simtest.Durable},
		"it is decided twice":             {func(h *store.History) { h.Events[1].Kind = store.EventExpired }, simtest.OneVerdict},
		"an effect without a decision":    {func(h *store.History) { h.Events[2].Kind = store.EventAsked }, simtest.ApprovedOnly},
		"an effect after the end":         {func(h *store.History) { h.Events[2].Kind = store.EventFailed }, simtest.Fenced},
		"an effect that was not executed": {func(h *store.History) { h.Effects[0].IdempotencyKey = "other" }, simtest.ApprovedOnly},
		"two keys": {func(h *store.History) {
			h.Effects = append(h.Effects, store.Effect{NewEffect: store.NewEffect{Interrupt: "i", IdempotencyKey: "other"}})
		}, simtest.OnceOnly},
		"a fence above that of the run": {func(h *store.History) { h.Effects[0].Fence = 2 }, simtest.Fenced},
	} {
		h := valid()
		test.change(&h)
		found := false
		for _, v := range simtest.CheckHistory(h, executed) {
			found = found || v.Invariant == test.want
		}
		if !found {
			t.Errorf("%s: %q is not reported", name, test.want)
		}
	}
}
