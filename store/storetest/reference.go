package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// Reference compares an implementation of [store.Store] with the one in memory: whatever is done to both, they say the same, to the
// microsecond. open is called once. The store that it returns is empty, and takes all its times from the clock.
func Reference(t *testing.T, open func(t *testing.T, clock func() time.Time) store.Store) {
	var now time.Time
	clock := func() time.Time { return now }
	other := open(t, clock)
	steps, histories := rapid.IntRange(20, 60), 0
	if raceDetector {
		steps = rapid.IntRange(10, 20) // one goroutine does it all: there is little to find
	}
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		now = time.UnixMicro(1_700_000_000_000_000).UTC()
		m := &twins{
			T: rt, now: &now, name: fmt.Sprint(histories), memory: memory.NewRuns(clock), other: other,
			made: map[store.Key]string{}, fed: map[string][2]string{},
		}
		m.empty()
		m.openLogs()
		for range steps.Draw(rt, "steps") {
			m.step()
			m.compare()
		}
	})
}

// twins are two stores to which everything is done.
type twins struct {
	*rapid.T
	memory  *memory.Runs
	other   store.Store
	now     *time.Time
	name    string // that of this history: of some things there is no end, and the next one must not find them
	unique  int    // makes times and ids of different things differ, so that every order is defined
	made    map[store.Key]string
	leases  []store.Lease
	effects []store.Effect
	resumes []seenResume
	fed     map[string][2]string // where the feeds of an account are
	logs    map[string]readLog
}

type seenResume struct{ account, actor, id string }

// empty leaves nothing of the history before this one: every run is forgotten, and also those that were only talked about.
func (m *twins) empty() {
	for _, account := range modelAccounts {
		list, err := m.other.List(m.Context(), account, store.Filter{Limit: 1000})
		for _, run := range list {
			if err == nil {
				err = m.remove(run)
			}
		}
		for n := range 3 {
			run := store.NewRun{Account: account, ID: fmt.Sprintf("%s-%d", account, n+1), StateKey: "empty"}
			if err == nil {
				_, err = m.other.Create(m.Context(), run)
			}
			if err == nil {
				err = m.remove(store.Run{Account: account, ID: run.ID, StateKey: run.StateKey, Status: store.Running})
			}
		}
		if err != nil {
			m.Fatal(err)
		}
	}
}

func (m *twins) remove(run store.Run) error {
	if run.Status.Alive() {
		if _, err := m.other.Cancel(m.Context(), run.Account, run.ID, store.Cancelled, nil, store.Beside{}); err != nil {
			return err
		}
	}
	return m.other.Forget(m.Context(), run.Account, run.ID, store.Beside{})
}

// both calls the two stores and wants the same from them.
func both[T any](m *twins, what string, call func(store.Store) (T, error)) (T, error) {
	want, wantErr := call(m.memory)
	got, err := call(m.other)
	if !errors.Is(err, wantErr) {
		m.Fatalf("%s: got error %v, want %v", what, err, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Fatalf("%s (-memory +other):\n%s", what, diff)
	}
	return got, err
}

func bothDo(m *twins, what string, call func(store.Store) error) {
	both(m, what, func(s store.Store) (struct{}, error) { return struct{}{}, call(s) })
}

// compare looks at everything that can be looked at.
func (m *twins) compare() {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			both(m, "Get", func(s store.Store) (store.Run, error) { return s.Get(m.Context(), account, key) })
			both(m, "Standing", func(s store.Store) (store.Standing, error) {
				return s.Standing(m.Context(), account, key, ofTheRun)
			})
		}
		both(m, "List", func(s store.Store) ([]store.Run, error) { return s.List(m.Context(), account, store.Filter{}) })
		m.compareFeeds(account)
		m.compareDesk(account)
	}
	for key := range m.made {
		both(m, "History", func(s store.Store) (store.History, error) { return s.History(m.Context(), key.Account, key.Run) })
		both(m, "Load", func(s store.Store) (store.Checkpoint, error) { return s.Load(m.Context(), key) })
	}
	for _, seen := range m.resumes {
		both(m, "Resumed", func(s store.Store) (store.Receipt, error) {
			return s.Resumed(m.Context(), seen.account, seen.actor, seen.id)
		})
	}
	both(m, "Now", func(s store.Store) (time.Time, error) { return s.Now(m.Context()) })
}

// compareFeeds follows both feeds, each by its own cursors.
func (m *twins) compareFeeds(account string) {
	at := m.fed[account]
	want, next, err := m.memory.Feed(m.Context(), account, at[0], 0)
	if err != nil {
		m.Fatal(err)
	}
	got, otherNext, err := m.other.Feed(m.Context(), account, at[1], 0)
	if err != nil {
		m.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Fatalf("Feed (-memory +other):\n%s", diff)
	}
	m.fed[account] = [2]string{next, otherNext}
}

// What follows draws what a step is done with.

var (
	modelAccounts = []string{"a", "\x00b\xff"}
	modelKeys     = []string{"k1", "k2\x00"}
)

func pick[T any](m *twins, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(m.T, label)
}

// often is mostly true: most steps should come to something.
func (m *twins) often() bool { return rapid.IntRange(0, 7).Draw(m.T, "often") > 0 }

func (m *twins) account() string  { return pick(m, "account", modelAccounts...) }
func (m *twins) stateKey() string { return pick(m, "state key", modelKeys...) }
func (m *twins) number() int      { return rapid.IntRange(1, 3).Draw(m.T, "number") }
func (m *twins) bytes() []byte    { return pick(m, "bytes", nil, []byte{}, []byte("x\x00y")) }

// run is the id of a run. Those of two accounts differ because the reference does not say which of two equal ones goes first.
func (m *twins) run(account string) string { return fmt.Sprintf("%s-%d", account, m.number()) }

func (m *twins) interrupt(run string) string { return fmt.Sprintf("%s-i%d", run, m.number()) }

func (m *twins) duration() time.Duration {
	m.unique++
	return pick(m, "duration", 50*time.Microsecond, time.Hour, time.Hour) + time.Duration(m.unique)*time.Microsecond
}

// good are the leases that are still good.
func (m *twins) good() (good []store.Lease) {
	for _, lease := range m.leases {
		run, err := m.memory.Get(m.Context(), lease.Account, m.made[store.Key{Account: lease.Account, Run: lease.Run}])
		if err == nil && run.ID == lease.Run && run.Status == store.Running && run.Fence == lease.Fence {
			good = append(good, lease)
		}
	}
	return good
}

// moments are those to come at which something ends.
func (m *twins) moments() (moments []time.Time) {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			if run, err := m.memory.Get(m.Context(), account, key); err == nil {
				moments = append(moments, run.Until)
				moments = append(moments, m.deadlines(run)...)
			}
		}
		moments = append(moments, m.nexts(account)...)
	}
	return slices.DeleteFunc(moments, func(at time.Time) bool { return !at.After(*m.now) })
}

func (m *twins) deadlines(run store.Run) (moments []time.Time) {
	all, err := m.memory.Interrupts(m.Context(), run.Account, run.ID)
	if err != nil {
		m.Fatal(err)
	}
	for _, i := range all {
		moments = append(moments, i.Deadline)
	}
	return moments
}

// lease is mostly a good one.
func (m *twins) lease() store.Lease {
	if good := m.good(); len(good) > 0 && m.often() {
		return pick(m, "lease", good...)
	}
	return pick(m, "any lease", append(slices.Clone(m.leases), store.Lease{Account: "a", Run: "a-1", Fence: 1})...)
}

// asked is mostly an interrupt of which the condition is true.
func (m *twins) asked(account, run string, is func(store.Interrupt) bool) store.Interrupt {
	all, err := m.memory.Interrupts(m.Context(), account, run)
	if err != nil {
		m.Fatal(err)
	}
	fitting := slices.DeleteFunc(all, func(i store.Interrupt) bool { return !is(i) })
	if len(fitting) > 0 && m.often() {
		return pick(m, "interrupt", fitting...)
	}
	return store.Interrupt{NewInterrupt: store.NewInterrupt{ID: m.interrupt(run)}}
}

// pendingRun is mostly a run that asks something.
func (m *twins) pendingRun() (account, run string) {
	var asking []store.Key
	for _, account := range modelAccounts {
		for n := range 3 {
			key := store.Key{Account: account, Run: fmt.Sprintf("%s-%d", account, n+1)}
			all, err := m.memory.Interrupts(m.Context(), key.Account, key.Run)
			if err != nil {
				m.Fatal(err)
			}
			if slices.ContainsFunc(all, func(i store.Interrupt) bool { return i.State == store.Pending }) {
				asking = append(asking, key)
			}
		}
	}
	if len(asking) > 0 && m.often() {
		key := pick(m, "asking", asking...)
		return key.Account, key.Run
	}
	account = m.account()
	return account, m.run(account)
}
