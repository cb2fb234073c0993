package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

func (d *runsTester) list(filter store.RunFilter) []store.Run {
	d.t.Helper()
	list, err := d.runs.List(d.ctx(), "acme", filter)
	d.must(err)
	return list
}

// wantRuns checks which runs match a filter.
func (d *runsTester) wantRuns(filter store.RunFilter, want ...string) {
	d.t.Helper()
	got := []string{}
	for _, run := range d.list(filter) {
		got = append(got, run.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Errorf("%+v lists %q, not %q", filter, got, want)
	}
}

func testList(t *testing.T, d *runsTester) {
	d.waiting("r1", "i1")
	d.create("r3")
	d.create("r2")
	list := d.list(store.RunFilter{})
	newest := func(a, b store.Run) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) }
	if len(list) != 3 || !slices.IsSortedFunc(list, newest) {
		t.Fatalf("the list is %+v", list)
	}
	for _, run := range list {
		whole, err := d.runs.Get(d.ctx(), "acme", "key-"+run.ID)
		d.must(err)
		if run.ProviderRef != nil || run.Input != nil || run.Outcome != nil {
			t.Errorf("the list contains sealed values: %+v", run)
		}
		run.ProviderRef, run.Input, run.Outcome = whole.ProviderRef, whole.Input, whole.Outcome
		if fmt.Sprint(run) != fmt.Sprint(whole) {
			t.Errorf("the list has %+v of %+v", run, whole)
		}
	}
	none, err := d.runs.List(d.ctx(), "other", store.RunFilter{})
	if err != nil || len(none) > 0 {
		t.Errorf("I8: another account sees %+v, %v", none, err)
	}
}

func testListFilter(t *testing.T, d *runsTester) {
	for _, run := range []struct{ id, provider, graph string }{
		{"waiting", "p", "g"}, {"waiting too", "q", "h"}, {"running", "p", "h"}, {"parked", "p", "g"}, {"over", "q", "g"},
	} {
		n := newRun(run.id)
		n.Provider, n.Graph = run.provider, run.graph
		lease, err := d.runs.Create(d.ctx(), n)
		d.must(err)
		switch run.id {
		case "waiting", "waiting too":
			d.endWaiting(lease, "i-"+run.id)
		case "parked":
			d.release(lease, store.Release{Park: true})
		case "over":
			_, err := d.runs.EndExecution(d.ctx(), lease, store.ExecutionEnd{Status: store.StatusCompleted})
			d.must(err)
		}
	}
	d.wantRuns(store.RunFilter{}, "waiting", "waiting too", "running", "parked", "over")
	d.wantRuns(store.RunFilter{Status: []store.Status{store.StatusWaiting}}, "waiting", "waiting too")
	d.wantRuns(store.RunFilter{Status: []store.Status{store.StatusParked, store.StatusCompleted, store.StatusParked}}, "parked", "over")
	d.wantRuns(store.RunFilter{Status: []store.Status{store.StatusFailed, "no such status"}})
	d.wantRuns(store.RunFilter{Provider: "q"}, "waiting too", "over")
	d.wantRuns(store.RunFilter{Graph: "h"}, "waiting too", "running")
	d.wantRuns(store.RunFilter{Provider: "p", Graph: "g"}, "waiting", "parked")
	d.wantRuns(store.RunFilter{Status: []store.Status{store.StatusWaiting, store.StatusRunning}, Provider: "p"}, "waiting", "running")
	d.wantRuns(store.RunFilter{Graph: "unknown"})
}

func testListPages(t *testing.T, d *runsTester) {
	var want []string
	for n := range 11 {
		id := fmt.Sprint("r", (n*7)%11) // not in the order of the ids
		if lease := d.create(id); n%2 == 0 {
			d.release(lease, store.Release{Park: true})
		}
		want = append(want, id)
	}
	slices.Reverse(want)
	for _, filter := range []store.RunFilter{{Limit: 3}, {Limit: 3, Status: []store.Status{store.StatusRunning, store.StatusParked}}, {Limit: 4, Graph: "g"}, {Limit: 11}, {Limit: 1}} {
		var got []string
		for page := 0; ; page++ {
			list := d.list(filter)
			if len(list) == 0 {
				break
			}
			if len(list) > filter.Limit || page > 50 {
				t.Fatalf("page %d of %d has %d", page, filter.Limit, len(list))
			}
			for _, run := range list {
				got = append(got, run.ID)
			}
			last := list[len(list)-1]
			filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
			if page == 0 {
				newer := newRun(fmt.Sprintf("newer than %+v", filter))
				newer.StateKey, newer.Graph = newer.ID, "g" // must not shift a page
				_, err := d.runs.Create(d.ctx(), newer)
				d.must(err)
			}
		}
		got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(want, id) })
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d have %q, not %q", filter.Limit, got, want)
		}
	}
}

func testListLimit(t *testing.T, d *runsTester) {
	for n := range 102 {
		d.create(fmt.Sprint("r", n))
	}
	for limit, want := range map[int]int{0: 100, 101: 101, 5000: 102} {
		if list := d.list(store.RunFilter{Limit: limit}); len(list) != want {
			t.Errorf("a limit of %d lists %d", limit, len(list))
		}
	}
}
