package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/store"
)

func is(err, want error) bool { return errors.Is(err, want) }

// reseal goes over everything, some at a time.
func (h *house) reseal(limit int, fn func(store.Sealed) ([]byte, error)) {
	h.t.Helper()
	for after := ""; ; {
		next, err := h.store.Reseal(h.ctx(), after, limit, fn)
		h.must(err)
		if next == "" {
			return
		}
		if next == after { // or it would go on for ever
			h.t.Fatalf("from %q it goes on at %q", after, next)
		}
		after = next
	}
}

// anew is a value under the next key.
func anew(s store.Sealed) ([]byte, error) { return append([]byte("anew: "), s.Data...), nil }

// whatLifeSeals is what is sealed in run id after [house.life], one line for each.
func whatLifeSeals(id string) []string {
	return []string{
		"acme ref " + id + ": ref", "acme input " + id + ": in", "acme outcome " + id + ": outcome of " + id,
		"acme part " + id + " state: state of " + id,
		"acme data " + id + "-allowed: what is allowed", "acme data " + id + "-1: data of " + id + "-1", "acme data " + id + "-2: data of " + id + "-2",
		"acme answer " + id + "-1: yes",
		"acme receipt " + id + "-allowed: receipt of " + id + "-allowed", "acme receipt " + id + "-1: receipt of " + id + "-1",
		"acme paper " + id + "-vote vote: vote in " + id,
	}
}

func line(s store.Sealed) string {
	if s.Part != "" {
		s.ID += " " + s.Part
	}
	return fmt.Sprintf("%s %s %s: %s", s.Account, s.What, s.ID, s.Data)
}

// sealed is everything that is sealed, one sorted line for each.
func (h *house) sealed(limit int) (lines []string) {
	h.t.Helper()
	h.reseal(limit, func(s store.Sealed) ([]byte, error) {
		lines = append(lines, line(s))
		return nil, nil
	})
	slices.Sort(lines)
	return slices.Compact(lines) // the outcome of a resume may be kept with it, or with the run
}

func testReseal(t *testing.T, h *house) {
	h.life("r")
	foreign := newRun("r")
	foreign.Account, foreign.Input, foreign.Ref = "other", []byte("theirs"), nil
	_, err := h.store.Create(h.ctx(), foreign)
	h.must(err)
	_, err = h.store.Once(h.ctx(), "name", []byte("value"))
	h.must(err)
	want := append(whatLifeSeals("r"), "other input r: theirs", " once name: value")
	slices.Sort(want)
	if diff := cmp.Diff(want, h.sealed(100)); diff != "" {
		t.Fatal(diff)
	}

	before := h.history("acme", "r")
	h.reseal(100, anew)
	for _, value := range sealedIn(&before) {
		*value = append([]byte("anew: "), *value...)
	}
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Errorf("more than the bytes changed (-want +got):\n%s", diff)
	}
	wantStored(t, h.store, store.Key{Account: "acme", Run: "r"}, parts{"state": "anew: state of r"}.at(1))
	if run, err := h.store.Get(h.ctx(), "other", "key-r"); err != nil || run.Ref != nil || string(run.Input) != "anew: theirs" {
		t.Errorf("the other's is %+v, %v", run, err)
	}
	if kept, err := h.store.Once(h.ctx(), "name", []byte("late")); err != nil || string(kept) != "anew: value" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

// sealedIn is every sealed value of a history that is there.
func sealedIn(h *store.History) (values []*[]byte) {
	values = append(values, &h.Run.Ref, &h.Run.Input, &h.Run.Outcome)
	for n := range h.Interrupts {
		values = append(values, &h.Interrupts[n].Data, &h.Interrupts[n].Answer)
	}
	for n := range h.Resumes {
		values = append(values, &h.Resumes[n].Receipt.Outcome)
	}
	for n := range h.Effects {
		values = append(values, &h.Effects[n].Receipt)
	}
	for n := range h.Papers {
		values = append(values, &h.Papers[n].Body)
	}
	return slices.DeleteFunc(values, func(value *[]byte) bool { return *value == nil })
}

func testResealPages(t *testing.T, h *house) {
	h.life("r1")
	h.life("r2")
	want := append(whatLifeSeals("r1"), whatLifeSeals("r2")...)
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, len(want), len(want) + 1} {
		calls := 0
		var got []string
		for after := ""; ; {
			page := 0
			next, err := h.store.Reseal(h.ctx(), after, limit, func(s store.Sealed) ([]byte, error) {
				page++
				got = append(got, line(s))
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

func testResealKeeps(t *testing.T, h *house) {
	h.life("r")
	before := h.history("acme", "r")
	h.reseal(3, func(store.Sealed) ([]byte, error) { return nil, nil })
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("no such key")
	_, err := h.store.Reseal(h.ctx(), "", 100, func(store.Sealed) ([]byte, error) { return nil, broken })
	h.wants(err, broken)
	if diff := cmp.Diff(before, h.history("acme", "r")); diff != "" {
		t.Error(diff)
	}
}

// testResealChanged changes everything that can change between the moment in which a value is handed out and that in which the new
// one would be kept.
func testResealChanged(t *testing.T, h *house) {
	h.waiting("r", "i")
	h.gets(approve("r", "1", "i"), store.Accepted)
	lease := h.claimed("w", "r").Lease
	key := store.Key{Account: "acme", Run: "r"}
	mustSave(t, h.store, key, 0, parts{"changed": "old", "gone": "old", "kept": "old"}.delta())
	h.life("forgotten")
	done := make(map[store.SealedWhat]bool)
	first := func(what store.SealedWhat, s store.Sealed) bool { // a value of the run that is handed out
		is := !done[what] && (what == "" || s.What == what && s.ID == "r")
		done[what] = done[what] || is
		return is
	}
	h.reseal(1000, func(s store.Sealed) ([]byte, error) {
		if first("", s) {
			h.must(h.store.SetRef(h.ctx(), lease, []byte("changed")))
			h.must(h.store.Forget(h.ctx(), "acme", "forgotten", store.Beside{}))
		}
		if first(store.SealedOutcome, s) {
			h.rest(lease, store.Rest{Status: store.Completed, Applied: []string{"i"}, Outcome: []byte("changed")})
		}
		if first(store.SealedPart, s) {
			mustSave(t, h.store, key, 1, parts{"changed": "changed"}.delta("gone"))
		}
		return anew(s)
	})
	run, err := h.store.Get(h.ctx(), "acme", "key-r")
	h.must(err)
	if string(run.Ref) != "changed" || string(run.Outcome) != "changed" || string(run.Input) != "anew: in" {
		t.Errorf("the run has %q, %q, %q", run.Ref, run.Outcome, run.Input)
	}
	wantStored(t, h.store, key, parts{"changed": "changed", "kept": "anew: old"}.at(2))
	if receipt, err := h.store.Resumed(h.ctx(), "acme", "ann", "1"); err != nil || string(receipt.Outcome) != "changed" {
		t.Errorf("the resume has %q, %v", receipt.Outcome, err)
	}
	h.gone("forgotten")
}

// testResealHandsOver has a run come to its next rest between the moment in which its outcome is handed out and that in which the new one would be kept: the
// old one is with the resume then, and must not be left there under the old key.
func testResealHandsOver(t *testing.T, h *house) {
	h.waiting("r", "i1", "i2")
	h.gets(approve("r", "1", "i1"), store.Accepted)
	h.goOn(store.Waiting, "first", []string{"i1"}, "i2")
	h.gets(approve("r", "2", "i2"), store.Accepted)
	lease, rested := h.claimed("w", "r").Lease, false
	h.reseal(1000, func(s store.Sealed) ([]byte, error) {
		if s.What == store.SealedOutcome && !rested {
			rested = true
			h.rest(lease, store.Rest{Status: store.Completed, Applied: []string{"i2"}, Outcome: []byte("anew: second")})
		}
		if bytes.HasPrefix(s.Data, []byte("anew: ")) {
			return nil, nil
		}
		return anew(s)
	})
	h.came(map[string]string{"1": "anew: first", "2": "anew: second"})
}

// testResealRace has everything sealed anew, again and again, while others write. Whatever key a value is under, it is the value that
// was written last.
func testResealRace(t *testing.T, h *house) {
	const writers, rounds = 4, 8
	var wg sync.WaitGroup
	defer wg.Wait() // also if the test fails
	for n := range writers {
		id := fmt.Sprint("r", n)
		lease, key := h.begin(id), store.Key{Account: "acme", Run: id}
		wg.Go(func() {
			for round := range int64(rounds) {
				text := fmt.Sprint("v", round+1)
				if _, err := h.store.Fenced(lease).Save(h.ctx(), key, round, parts{"state": text}.delta()); err != nil {
					t.Error(err)
				}
				if err := h.store.SetRef(h.ctx(), lease, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	other := func(s store.Sealed) ([]byte, error) { // under the other of two keys
		if plain, ok := bytes.CutPrefix(s.Data, []byte("*")); ok {
			return append([]byte{}, plain...), nil
		}
		return append([]byte("*"), s.Data...), nil
	}
	for range rounds {
		h.reseal(3, other)
	}
	wg.Wait()
	want := fmt.Sprint("v", rounds)
	for n := range writers {
		id := fmt.Sprint("r", n)
		run, err := h.store.Get(h.ctx(), "acme", "key-"+id)
		h.must(err)
		checkpoint := mustLoad(t, h.store, store.Key{Account: "acme", Run: id})
		for _, value := range [][]byte{run.Ref, checkpoint.Parts["state"]} {
			if got := string(bytes.TrimPrefix(value, []byte("*"))); got != want {
				t.Errorf("%s has %q, and %q was written last", id, value, want)
			}
		}
		if checkpoint.Version != rounds {
			t.Errorf("%s is at version %d", id, checkpoint.Version)
		}
	}
}
