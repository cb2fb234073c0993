package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// The store in memory is the reference: whatever is done to both, they say the same, to the microsecond.
func TestRuns_SameAsTheReference(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	// What a crash would do to the file is not asked here, and waiting for the disk takes most of the time.
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA synchronous = OFF`); err != nil {
		t.Fatal(err)
	}
	steps := rapid.IntRange(20, 60)
	if raceDetector {
		steps = rapid.IntRange(10, 20) // one goroutine does it all: there is little to find
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, s)
		for range steps.Draw(rt, "steps") {
			m.step()
			m.compare()
		}
	})
}

// model does everything to two stores.
type model struct {
	*rapid.T
	memory  *memory.Runs
	sqlite  *Store
	now     time.Time
	unique  int // makes times and ids of different things differ, so that every order is defined
	made    map[store.Key]string
	leases  []store.Lease
	effects []store.Effect
	resumes []*seenResume
}

type seenResume struct {
	account, actor, id string
	outcome            []byte // the first that the reference had
}

// forget leaves an empty book. Of a run that is alive nothing could be deleted.
const forget = `
UPDATE runs SET status = 'cancelled', fence = fence + 1, owner = NULL, lease_until = NULL, ready_after = NULL WHERE ` + alive + `;
DELETE FROM effects; DELETE FROM interrupts; DELETE FROM resumes; DELETE FROM runs; DELETE FROM checkpoints`

func newModel(rt *rapid.T, s *Store) *model {
	if _, err := s.writer.ExecContext(rt.Context(), forget); err != nil {
		rt.Fatal(err)
	}
	m := &model{T: rt, sqlite: s, now: time.UnixMicro(1_700_000_000_000_000).UTC(), made: map[store.Key]string{}}
	clock := func() time.Time { return m.now }
	m.memory, s.clock = memory.NewRuns(clock), clock
	return m
}

// both calls the two stores and wants the same from them.
func both[T any](m *model, what string, call func(store.Runs) (T, error)) (T, error) {
	want, wantErr := call(m.memory)
	got, err := call(m.sqlite)
	if !errors.Is(err, wantErr) {
		m.Fatalf("%s: got error %v, want %v", what, err, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Fatalf("%s (-memory +sqlite):\n%s", what, diff)
	}
	return got, err
}

func bothDo(m *model, what string, call func(store.Runs) error) {
	both(m, what, func(r store.Runs) (struct{}, error) { return struct{}{}, call(r) })
}

// compare looks at everything that can be looked at.
func (m *model) compare() {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			both(m, "Get", func(r store.Runs) (store.Run, error) { return r.Get(m.Context(), account, key) })
		}
	}
	for key := range m.made {
		both(m, "Interrupts", func(r store.Runs) ([]store.Interrupt, error) { return r.Interrupts(m.Context(), key.Account, key.Run) })
	}
	for _, seen := range m.resumes {
		m.compareResume(seen)
	}
	both(m, "Now", func(r store.Runs) (time.Time, error) { return r.Now(m.Context()) })
}

// compareResume lets the first outcome of a resume stand, where the reference has the last.
func (m *model) compareResume(seen *seenResume) {
	want, wantErr := m.memory.Resumed(m.Context(), seen.account, seen.actor, seen.id)
	if seen.outcome == nil {
		seen.outcome = slices.Clone(want.Outcome)
	}
	want.Outcome = seen.outcome
	got, err := m.sqlite.Resumed(m.Context(), seen.account, seen.actor, seen.id)
	if !errors.Is(err, wantErr) {
		m.Fatalf("Resumed: got error %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Fatalf("Resumed (-memory +sqlite):\n%s", diff)
	}
}

// What follows draws what a step is done with.

var (
	modelAccounts = []string{"a", "\x00b\xff"}
	modelKeys     = []string{"k1", "k2\x00"}
)

func pick[T any](m *model, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(m.T, label)
}

// often is mostly true: most steps should come to something.
func (m *model) often() bool { return rapid.IntRange(0, 7).Draw(m.T, "often") > 0 }

func (m *model) account() string  { return pick(m, "account", modelAccounts...) }
func (m *model) stateKey() string { return pick(m, "state key", modelKeys...) }
func (m *model) number() int      { return rapid.IntRange(1, 3).Draw(m.T, "number") }
func (m *model) bytes() []byte    { return pick(m, "bytes", nil, []byte{}, []byte("x\x00y")) }

// run is the id of a run. Those of two accounts differ because the reference does not say which of two equal ones goes first.
func (m *model) run(account string) string { return fmt.Sprintf("%s-%d", account, m.number()) }

func (m *model) interrupt(run string) string { return fmt.Sprintf("%s-i%d", run, m.number()) }

func (m *model) duration() time.Duration {
	m.unique++
	return pick(m, "duration", 50*time.Microsecond, time.Hour, time.Hour) + time.Duration(m.unique)*time.Microsecond
}

// good are the leases that are still good.
func (m *model) good() (good []store.Lease) {
	for _, lease := range m.leases {
		run, err := m.memory.Get(m.Context(), lease.Account, m.made[store.Key{Account: lease.Account, Run: lease.Run}])
		if err == nil && run.ID == lease.Run && run.Status == store.Running && run.Fence == lease.Fence {
			good = append(good, lease)
		}
	}
	return good
}

// moments are those to come at which something ends.
func (m *model) moments() (moments []time.Time) {
	for _, account := range modelAccounts {
		for _, key := range modelKeys {
			if run, err := m.memory.Get(m.Context(), account, key); err == nil {
				moments = append(moments, run.Until)
				moments = append(moments, m.deadlines(run)...)
			}
		}
	}
	return slices.DeleteFunc(moments, func(at time.Time) bool { return !at.After(m.now) })
}

func (m *model) deadlines(run store.Run) (moments []time.Time) {
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
func (m *model) lease() store.Lease {
	if good := m.good(); len(good) > 0 && m.often() {
		return pick(m, "lease", good...)
	}
	return pick(m, "any lease", append(slices.Clone(m.leases), store.Lease{Account: "a", Run: "a-1", Fence: 1})...)
}

// asked is mostly an interrupt of which the condition is true.
func (m *model) asked(account, run string, is func(store.Interrupt) bool) store.Interrupt {
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
func (m *model) pendingRun() (account, run string) {
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
