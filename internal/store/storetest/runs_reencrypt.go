package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

func isField(err, want error) bool { return errors.Is(err, want) }

// reencryptAll passes over all values in pages.
func (h *storeTester) reencryptAll(limit int, fn func(store.SealedValue) ([]byte, error)) {
	h.t.Helper()
	for after := ""; ; {
		next, err := h.store.Reencrypt(h.ctx(), after, limit, fn)
		h.must(err)
		if next == "" {
			return
		}
		if next == after { // otherwise it would not end
			h.t.Fatalf("from %q it continues at %q", after, next)
		}
		after = next
	}
}

// reencrypted returns a value under the next key.
func reencrypted(s store.SealedValue) ([]byte, error) {
	return append([]byte("anew: "), s.Data...), nil
}

// sealedByFullRun lists the sealed values of run id after [storeTester.fullRun], one per line.
func sealedByFullRun(id string) []string {
	return []string{
		"acme ref " + id + ": ref", "acme input " + id + ": in", "acme outcome " + id + ": outcome of " + id,
		"acme part " + id + " state: state of " + id,
		"acme data " + id + "-allowed: what is allowed", "acme data " + id + "-1: data of " + id + "-1", "acme data " + id + "-2: data of " + id + "-2",
		"acme answer " + id + "-1: yes",
		"acme receipt " + id + "-allowed: receipt of " + id + "-allowed", "acme receipt " + id + "-1: receipt of " + id + "-1",
		"acme paper " + id + "-vote vote: vote in " + id,
	}
}

func sealedLine(s store.SealedValue) string {
	if s.Part != "" {
		s.ID += " " + s.Part
	}
	return fmt.Sprintf("%s %s %s: %s", s.Account, s.Field, s.ID, s.Data)
}

// sealedValues lists all sealed values, one sorted line per value.
func (h *storeTester) sealedValues(limit int) (lines []string) {
	h.t.Helper()
	h.reencryptAll(limit, func(s store.SealedValue) ([]byte, error) {
		lines = append(lines, sealedLine(s))
		return nil, nil
	})
	slices.Sort(lines)
	return slices.Compact(lines) // the outcome of a resume may be stored with it or with the run
}

func testReencrypt(t *testing.T, h *storeTester) {
	h.fullRun("r")
	foreign := newRun("r")
	foreign.Account, foreign.Input, foreign.ProviderRef = "other", []byte("theirs"), nil
	_, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	_, err = h.store.PutIfAbsent(h.ctx(), "name", []byte("value"))
	h.must(err)
	want := append(sealedByFullRun("r"), "other input r: theirs", " once name: value")
	slices.Sort(want)
	if diff := cmp.Diff(want, h.sealedValues(100)); diff != "" {
		t.Fatal(diff)
	}

	before := h.history("acme", "r")
	h.reencryptAll(100, reencrypted)
	for _, value := range sealedIn(&before) {
		*value = append([]byte("anew: "), *value...)
	}
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Errorf("more than the bytes changed (-want +got):\n%s", diff)
	}
	wantStored(t, h.store, store.Key{Account: "acme", Run: "r"}, parts{"state": "anew: state of r"}.checkpoint(1))
	if run, err := h.store.Get(h.ctx(), "other", "key-r"); err != nil || run.ProviderRef != nil || string(run.Input) != "anew: theirs" {
		t.Errorf("the other's is %+v, %v", run, err)
	}
	if kept, err := h.store.PutIfAbsent(h.ctx(), "name", []byte("late")); err != nil || string(kept) != "anew: value" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

// sealedIn returns every sealed value of a history.
func sealedIn(h *store.History) (values []*[]byte) {
	values = append(values, &h.Run.ProviderRef, &h.Run.Input, &h.Run.Outcome)
	for n := range h.Interrupts {
		values = append(values, &h.Interrupts[n].Data, &h.Interrupts[n].Answer)
	}
	for n := range h.Resumes {
		values = append(values, &h.Resumes[n].Receipt.Outcome)
	}
	for n := range h.Effects {
		values = append(values, &h.Effects[n].Receipt)
	}
	for n := range h.Documents {
		values = append(values, &h.Documents[n].Body)
	}
	return slices.DeleteFunc(values, func(value *[]byte) bool { return *value == nil })
}

func testReencryptPages(t *testing.T, h *storeTester) {
	h.fullRun("r1")
	h.fullRun("r2")
	want := append(sealedByFullRun("r1"), sealedByFullRun("r2")...)
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, len(want), len(want) + 1} {
		calls := 0
		var got []string
		for after := ""; ; {
			page := 0
			next, err := h.store.Reencrypt(h.ctx(), after, limit, func(s store.SealedValue) ([]byte, error) {
				page++
				got = append(got, sealedLine(s))
				return nil, nil
			})
			h.must(err)
			if page > limit {
				t.Fatalf("a page of %d has %d", limit, page)
			}
			if calls++; next == "" || calls > 1000 {
				break
			}
			after = next
		}
		if slices.Sort(got); !slices.Equal(slices.Compact(got), want) {
			t.Errorf("pages of %d have\n%q, not\n%q", limit, got, want)
		}
	}
}

func testReencryptKeepsNil(t *testing.T, h *storeTester) {
	h.fullRun("r")
	before := h.history("acme", "r")
	h.reencryptAll(3, func(store.SealedValue) ([]byte, error) { return nil, nil })
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("no such key")
	_, err := h.store.Reencrypt(h.ctx(), "", 100, func(store.SealedValue) ([]byte, error) { return nil, broken })
	h.wantErr(err, broken)
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Error(diff)
	}
}

// testReencryptSkipsChanged changes everything that can change between reading a value and writing
// its replacement.
func testReencryptSkipsChanged(t *testing.T, h *storeTester) {
	h.waiting("r", "i")
	h.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	lease := h.claimed("w", "r").Lease
	key := store.Key{Account: "acme", Run: "r"}
	mustSave(t, h.store, key, 0, parts{"changed": "old", "gone": "old", "kept": "old"}.delta())
	h.fullRun("forgotten")
	done := make(map[store.SealedField]bool)
	// a value of the run that is passed
	first := func(what store.SealedField, s store.SealedValue) bool {
		is := !done[what] && (what == "" || s.Field == what && s.ID == "r")
		done[what] = done[what] || is
		return is
	}
	h.reencryptAll(1000, func(s store.SealedValue) ([]byte, error) {
		if first("", s) {
			h.must(h.store.SetProviderRef(h.ctx(), lease, []byte("changed")))
			h.must(h.store.DeleteRun(h.ctx(), "acme", "forgotten", store.Writes{}))
		}
		if first(store.SealedOutcome, s) {
			h.endExecution(lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i"}, Outcome: []byte("changed")})
		}
		if first(store.SealedPart, s) {
			mustSave(t, h.store, key, 1, parts{"changed": "changed"}.delta("gone"))
		}
		return reencrypted(s)
	})
	run, err := h.store.Get(h.ctx(), "acme", "key-r")
	h.must(err)
	if string(run.ProviderRef) != "changed" || string(run.Outcome) != "changed" || string(run.Input) != "anew: in" {
		t.Errorf("the run has %q, %q, %q", run.ProviderRef, run.Outcome, run.Input)
	}
	wantStored(t, h.store, key, parts{"changed": "changed", "kept": "anew: old"}.checkpoint(2))
	if receipt, err := h.store.Receipt(h.ctx(), "acme", "ann", "1"); err != nil || string(receipt.Outcome) != "changed" {
		t.Errorf("the resume has %q, %v", receipt.Outcome, err)
	}
	h.wantDeleted("forgotten")
}

// testReencryptDuringOutcomeCopy ends another execution between reading the outcome of a run and
// writing its replacement. The old outcome is copied to the resume then, and must not stay there
// under the old key.
func testReencryptDuringOutcomeCopy(t *testing.T, h *storeTester) {
	h.waiting("r", "i1", "i2")
	h.wantResult(approve("r", "1", "i1"), store.ResultAccepted)
	h.claimAndEnd(store.StatusWaiting, "first", []string{"i1"}, "i2")
	h.wantResult(approve("r", "2", "i2"), store.ResultAccepted)
	lease, rested := h.claimed("w", "r").Lease, false
	h.reencryptAll(1000, func(s store.SealedValue) ([]byte, error) {
		if s.Field == store.SealedOutcome && !rested {
			rested = true
			h.endExecution(lease, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{"i2"}, Outcome: []byte("anew: second")})
		}
		if bytes.HasPrefix(s.Data, []byte("anew: ")) {
			return nil, nil
		}
		return reencrypted(s)
	})
	h.wantOutcomes(map[string]string{"1": "anew: first", "2": "anew: second"})
}

// testReencryptRace re-encrypts everything repeatedly during concurrent writes. Under any key, a
// value must be the one that was written last.
func testReencryptRace(t *testing.T, h *storeTester) {
	const writers, rounds = 4, 8
	var wg sync.WaitGroup
	defer wg.Wait() // also if the test fails
	for n := range writers {
		id := fmt.Sprint("r", n)
		lease, key := h.create(id), store.Key{Account: "acme", Run: id}
		wg.Go(func() {
			for round := range int64(rounds) {
				text := fmt.Sprint("v", round+1)
				if _, err := h.store.Fenced(lease).Save(h.ctx(), key, round, parts{"state": text}.delta()); err != nil {
					t.Error(err)
				}
				if err := h.store.SetProviderRef(h.ctx(), lease, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	other := func(s store.SealedValue) ([]byte, error) { // under the other of two keys
		if plain, ok := bytes.CutPrefix(s.Data, []byte("*")); ok {
			return append([]byte{}, plain...), nil
		}
		return append([]byte("*"), s.Data...), nil
	}
	for range rounds {
		h.reencryptAll(3, other)
	}
	wg.Wait()
	want := fmt.Sprint("v", rounds)
	for n := range writers {
		id := fmt.Sprint("r", n)
		run, err := h.store.Get(h.ctx(), "acme", "key-"+id)
		h.must(err)
		checkpoint := mustLoad(t, h.store, store.Key{Account: "acme", Run: id})
		for _, value := range [][]byte{run.ProviderRef, checkpoint.Parts["state"]} {
			if got := string(bytes.TrimPrefix(value, []byte("*"))); got != want {
				t.Errorf("%s has %q, and %q was written last", id, value, want)
			}
		}
		if checkpoint.Version != rounds {
			t.Errorf("%s is at version %d", id, checkpoint.Version)
		}
	}
}
