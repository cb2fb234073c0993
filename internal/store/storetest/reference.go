package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/testtier"
)

// Reference compares an implementation of [store.Store] with the one in memory: the same calls must
// give the same results, to the microsecond. open is called once. The store that it returns must be
// empty and take all times from the clock.
func Reference(t *testing.T, open func(t *testing.T, clock func() time.Time) store.Store) {
	var now time.Time
	clock := func() time.Time { return now }
	other := open(t, clock)
	steps, histories := rapid.IntRange(20, testtier.Count(30, 60, 60)), 0
	if raceDetector {
		// everything runs on one goroutine, so there is little to find
		steps = rapid.IntRange(10, 20)
	}
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		now = time.UnixMicro(1_700_000_000_000_000).UTC()
		m := &storePair{
			T: rt, now: &now, name: fmt.Sprint(histories), memory: memory.NewStore(clock), other: other,
			made: map[store.Key]string{}, feeds: map[string][2]string{},
		}
		m.reset()
		m.openAudits()
		for range steps.Draw(rt, "steps") {
			m.step()
			m.compare()
		}
	})
}

// storePair is a pair of stores that get the same calls.
type storePair struct {
	*rapid.T
	memory *memory.Store
	other  store.Store
	now    *time.Time
	// prefix of this history: some data is never deleted, and the next history must not find it
	name    string
	unique  int // makes times and ids unique, so that every order is defined
	made    map[store.Key]string
	leases  []store.Lease
	effects []store.Effect
	resumes []resumeID
	feeds   map[string][2]string // the cursors of the feeds of an account
	logs    map[string]auditProgress
}

type resumeID struct{ account, actor, id string }

// reset deletes everything of the previous history, including the checkpoints of runs that were
// never created.
func (m *storePair) reset() {
	for _, account := range modelAccounts {
		list, err := m.other.List(m.Context(), account, store.RunFilter{Limit: 1000})
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
				err = m.remove(store.Run{Account: account, ID: run.ID, StateKey: run.StateKey, Status: store.StatusRunning})
			}
		}
		if err != nil {
			m.Fatal(err)
		}
	}
}

func (m *storePair) remove(run store.Run) error {
	if run.Status.Active() {
		if _, err := m.other.Cancel(m.Context(), run.Account, run.ID, store.StatusCancelled, nil, store.Writes{}); err != nil {
			return err
		}
	}
	return m.other.DeleteRun(m.Context(), run.Account, run.ID, store.Writes{})
}

// compareBoth makes a call on both stores and compares the results.
func compareBoth[T any](m *storePair, what string, call func(store.Store) (T, error)) (T, error) {
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

func compareErrors(m *storePair, what string, call func(store.Store) error) {
	compareBoth(m, what, func(s store.Store) (struct{}, error) { return struct{}{}, call(s) })
}

// compare compares everything that can be read.
func (m *storePair) compare() {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			compareBoth(m, "Get", func(s store.Store) (store.Run, error) { return s.Get(m.Context(), account, key) })
			compareBoth(m, "RunSnapshot", func(s store.Store) (store.RunSnapshot, error) {
				return s.RunSnapshot(m.Context(), account, key, runDocumentKind)
			})
		}
		compareBoth(m, "List", func(s store.Store) ([]store.Run, error) { return s.List(m.Context(), account, store.RunFilter{}) })
		m.compareFeeds(account)
		m.compareDocuments(account)
	}
	for key := range m.made {
		compareBoth(m, "History", func(s store.Store) (store.History, error) { return s.History(m.Context(), key.Account, key.Run) })
		compareBoth(m, "Load", func(s store.Store) (store.Checkpoint, error) { return s.Load(m.Context(), key) })
	}
	for _, seen := range m.resumes {
		compareBoth(m, "Receipt", func(s store.Store) (store.DecisionReceipt, error) {
			return s.Receipt(m.Context(), seen.account, seen.actor, seen.id)
		})
	}
	compareBoth(m, "Now", func(s store.Store) (time.Time, error) { return s.Now(m.Context()) })
}

// compareFeeds follows both feeds, each with its own cursors.
func (m *storePair) compareFeeds(account string) {
	at := m.feeds[account]
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
	m.feeds[account] = [2]string{next, otherNext}
}

// The following methods draw the arguments of a step.

var (
	modelAccounts = []string{"a", "\x00b\xff"}
	modelKeys     = []string{"k1", "k2\x00"}
)

func pick[T any](m *storePair, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(m.T, label)
}

// mostly is usually true, because most steps should succeed.
func (m *storePair) mostly() bool { return rapid.IntRange(0, 7).Draw(m.T, "often") > 0 }

func (m *storePair) account() string  { return pick(m, "account", modelAccounts...) }
func (m *storePair) stateKey() string { return pick(m, "state key", modelKeys...) }
func (m *storePair) number() int      { return rapid.IntRange(1, 3).Draw(m.T, "number") }
func (m *storePair) bytes() []byte    { return pick(m, "bytes", nil, []byte{}, []byte("x\x00y")) }

// run returns the id of a run. Ids of two accounts differ, because the reference does not define
// the order of equal ones.
func (m *storePair) run(account string) string { return fmt.Sprintf("%s-%d", account, m.number()) }

func (m *storePair) interrupt(run string) string { return fmt.Sprintf("%s-i%d", run, m.number()) }

func (m *storePair) duration() time.Duration {
	m.unique++
	return pick(m, "duration", 50*time.Microsecond, time.Hour, time.Hour) + time.Duration(m.unique)*time.Microsecond
}

// validLeases returns the leases that are still valid.
func (m *storePair) validLeases() (good []store.Lease) {
	for _, lease := range m.leases {
		run, err := m.memory.Get(m.Context(), lease.Account, m.made[store.Key{Account: lease.Account, Run: lease.Run}])
		if err == nil && run.ID == lease.Run && run.Status == store.StatusRunning && run.Fence == lease.Fence {
			good = append(good, lease)
		}
	}
	return good
}

// futureTimes returns future times at which something ends.
func (m *storePair) futureTimes() (moments []time.Time) {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			if run, err := m.memory.Get(m.Context(), account, key); err == nil {
				moments = append(moments, run.LeaseUntil)
				moments = append(moments, m.deadlines(run)...)
			}
		}
		moments = append(moments, m.dueTimes(account)...)
	}
	return slices.DeleteFunc(moments, func(at time.Time) bool { return !at.After(*m.now) })
}

func (m *storePair) deadlines(run store.Run) (moments []time.Time) {
	all, err := m.memory.Interrupts(m.Context(), run.Account, run.ID)
	if err != nil {
		m.Fatal(err)
	}
	for _, i := range all {
		moments = append(moments, i.Deadline)
	}
	return moments
}

// lease is usually a valid one.
func (m *storePair) lease() store.Lease {
	if good := m.validLeases(); len(good) > 0 && m.mostly() {
		return pick(m, "lease", good...)
	}
	return pick(m, "any lease", append(slices.Clone(m.leases), store.Lease{Account: "a", Run: "a-1", Fence: 1})...)
}

// interruptWhere usually returns an interrupt that matches.
func (m *storePair) interruptWhere(account, run string, is func(store.Interrupt) bool) store.Interrupt {
	all, err := m.memory.Interrupts(m.Context(), account, run)
	if err != nil {
		m.Fatal(err)
	}
	fitting := slices.DeleteFunc(all, func(i store.Interrupt) bool { return !is(i) })
	if len(fitting) > 0 && m.mostly() {
		return pick(m, "interrupt", fitting...)
	}
	return store.Interrupt{NewInterrupt: store.NewInterrupt{ID: m.interrupt(run)}}
}

// pendingRun usually returns a run with a pending interrupt.
func (m *storePair) pendingRun() (account, run string) {
	var asking []store.Key
	for _, account := range modelAccounts {
		for n := range 3 {
			key := store.Key{Account: account, Run: fmt.Sprintf("%s-%d", account, n+1)}
			all, err := m.memory.Interrupts(m.Context(), key.Account, key.Run)
			if err != nil {
				m.Fatal(err)
			}
			if slices.ContainsFunc(all, func(i store.Interrupt) bool { return i.State == store.InterruptPending }) {
				asking = append(asking, key)
			}
		}
	}
	if len(asking) > 0 && m.mostly() {
		key := pick(m, "asking", asking...)
		return key.Account, key.Run
	}
	account = m.account()
	return account, m.run(account)
}
