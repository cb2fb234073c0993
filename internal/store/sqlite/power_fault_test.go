//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/powerloss"
	"github.com/fermata-go/fermata/internal/testtier"
)

// Every file operation of every call, and of Open, fails once in a soak (every second one
// otherwise). Then the call fails or succeeds completely, acknowledged writes survive, and a
// repeated call on the same store succeeds.
func TestCrash_PowerFault_AnyFileOperationMayFail(t *testing.T) {
	skipUnderRace(t)
	for _, test := range []struct {
		name    string
		trouble powerloss.Fault
		says    error // the expected error, if it is known
	}{
		{"I/O error", powerloss.Fault{Kinds: powerloss.Kinds(), Err: syscall.EIO}, nil},
		{"no space", powerloss.Fault{Kinds: []powerloss.Kind{powerloss.Writing}, Err: syscall.ENOSPC}, ErrFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			seed := newPowerSeed(t)
			live := func(h *powerHistory) {
				f := &faultyRun{T: t, history: h, fault: test.trouble, results: test.says, rand: rand.New(rand.NewPCG(seed, 2))}
				f.run()
			}
			// Without and with automatic checkpoints, which SQLite runs after some commits and
			// whose errors it ignores.
			live(newHistory(t, sequentialScenarios(), `PRAGMA wal_autocheckpoint = 0`))
			short := append([]powerStep{restartStep, restartStep}, approvedScenario("r")[:5]...)
			live(newHistory(t, short, `PRAGMA wal_autocheckpoint = 10`, `PRAGMA journal_size_limit = 0`))
			for range testtier.Count(0, 0, 5) {
				live(randomHistory(t, seed, interleavedScenarios))
				seed++
			}
		})
	}
}

// A server that is restarted on a full disk must report that. The -shm file cannot grow, and SQLite
// reports an I/O error. (For a write, the error may come after the data is on disk, so there it is
// not ErrFull.)
func TestCrash_PowerFault_FullDiskAtOpenReturnsErrFull(t *testing.T) {
	trouble := powerloss.Fault{Kinds: []powerloss.Kind{powerloss.Writing, powerloss.Mapping}, Err: syscall.ENOSPC}
	f := &faultyRun{T: t, history: newHistory(t, []powerStep{restartStep, restartStep}), fault: trouble, results: ErrFull, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
	f.run()
}

// SQLite reports an exhausted quota or a file size limit as an I/O error, not as a full disk. The
// store must report it, so that health checks are correct.
func TestCrash_PowerFault_QuotaReturnsErrDisk(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EDQUOT, syscall.EFBIG} {
		trouble := powerloss.Fault{Kinds: []powerloss.Kind{powerloss.Writing}, Err: errno}
		f := &faultyRun{T: t, history: newHistory(t, []powerStep{restartStep, createStep("r", 0), saveStep("r", 1, 0, 5_000)}), fault: trouble, results: ErrDisk, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
		f.run()
	}
}

// Any operation of a group may fail. An acknowledged write is done, also after a power loss. An
// unacknowledged one can be repeated. Afterwards everything is as without the fault.
func TestCrash_PowerFault_AnyOperationOfAGroupMayFail(t *testing.T) {
	skipUnderRace(t)
	// so that a transaction writes to the WAL before it commits
	const spilling = `PRAGMA cache_size = 1`
	var begin, saves []powerStep
	for _, run := range []string{"a", "b", "c"} {
		begin, saves = append(begin, createStep(run, 0)), append(saves, saveStep(run, 1, 0, 50_000))
	}
	h := newHistory(t, append(append([]powerStep{restartStep}, begin...), groupStep(saves...)), `PRAGMA wal_autocheckpoint = 0`, spilling)
	r := rand.New(rand.NewPCG(newPowerSeed(t), 4))
	told := map[int]int{} // how often how many of the three were acknowledged
	for _, trouble := range []powerloss.Fault{
		{Kinds: powerloss.Kinds(), Err: syscall.EIO},
		{Kinds: []powerloss.Kind{powerloss.Writing}, Err: syscall.ENOSPC},
	} {
		for trouble.At = 1; ; trouble.At += testtier.Count(9, 3, 1) {
			done, met := groupWithFault(t, h, saves, trouble, r)
			if !met {
				break
			}
			told[done]++
		}
	}
	t.Logf("acknowledged, of three: %v", told)
	if told[0] == 0 || told[3] == 0 {
		t.Error("no group failed, or none succeeded after a fault")
	}
}

// groupWithFault runs the last step of a history, a group, with a fault in one of its operations.
// It returns how many of its writes were acknowledged.
func groupWithFault(t *testing.T, h *powerHistory, writes []powerStep, trouble powerloss.Fault, r *rand.Rand) (done int, met bool) {
	t.Helper()
	b := newPowerStore(t, nil, h.settings...)
	defer b.discard()
	last := len(h.steps) - 1
	if _, err := h.continueFrom(t.Context(), b, 0, false, last); err != nil {
		t.Fatal(err)
	}
	b.now = powerTime(last)
	errs := make([]error, len(writes))
	var calls []func(*Store)
	for n, step := range writes {
		calls = append(calls, func(s *Store) { _, errs[n] = step.result(t.Context(), &powerStore{Store: s}) })
	}
	b.disk.SetFault(trouble)
	runTogether(b.Store, calls...)
	met = b.disk.FaultHit()
	b.disk.SetFault(powerloss.Fault{})

	after := newPowerStore(t, b.disk.LosePower(b.disk.Changes(), powerloss.RandomSurvival(r)), h.settings...)
	defer after.discard()
	if err := errors.Join(after.open(t.Context()), after.checkIntegrity(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, book := range []*powerStore{b, after} {
		book.now = powerTime(last)
		for n, step := range writes {
			says, err := step.result(t.Context(), book)
			if err != nil || errs[n] == nil && says != step.repeatResult {
				t.Fatalf("fault %d: write %d returned %v; repeated, it returned %q, %v", trouble.At, n, errs[n], says, err)
			}
		}
		if state, err := book.dump(t.Context()); err != nil || state != h.states[last+1] {
			t.Fatalf("trouble %d: %v (-without +now):\n%s", trouble.At, err, diff(h.states[last+1], state))
		}
	}
	for _, err := range errs {
		if err == nil {
			done++
		}
	}
	return done, met
}

// faultyRun runs a history in which every operation fails once.
type faultyRun struct {
	*testing.T
	history *powerHistory
	rand    *rand.Rand
	fault   powerloss.Fault
	results error

	store  *powerStore
	before powerloss.Image // the content before the step
	opened bool            // whether it was open then
	count  struct{ met, failed, unnoticed, unknown, pulls int }
}

func (f *faultyRun) run() {
	f.begin(nil)
	defer func() { f.store.discard() }()
	for n := range f.history.steps {
		f.before, f.opened = f.image(), f.store.Store != nil
		// In a soak each operation fails once; otherwise only some of them, the others in the
		// next steps.
		stride := testtier.Count(12, 4, 1)
		for at := 1 + n%stride; f.try(n, at); at += stride {
		}
		f.losePower(n+1, 1) // syncs have failed by now and succeeded when they were repeated
	}
	f.Logf("%d operations failed: %d calls reported it (%d of them were done), %d did not; and %d power losses",
		f.count.met, f.count.failed, f.count.unknown, f.count.unnoticed, f.count.pulls)
	if f.count.failed == 0 || f.count.pulls == 0 {
		f.Error("nothing failed")
	}
}

// begin replaces the store by one with the content of an image.
func (f *faultyRun) begin(image powerloss.Image) {
	f.Helper()
	if f.store != nil {
		f.store.discard()
	}
	f.store = newPowerStore(f, image, f.history.settings...)
}

// image returns the content that the process sees, synced or not.
func (f *faultyRun) image() powerloss.Image {
	all := powerloss.Survival{Rand: f.rand, Sector: 512, Keep: 1}
	return f.store.disk.LosePower(f.store.disk.Changes(), all)
}

// try runs a step with a fault in one of its operations. It reports whether the fault occurred and
// leaves the step undone then.
func (f *faultyRun) try(n, at int) (met bool) {
	f.Helper()
	step := f.history.steps[n]
	f.store.now = powerTime(n)
	f.fault.At = at
	f.store.disk.SetFault(f.fault)
	says, err := step.result(f.Context(), f.store)
	met = f.store.disk.FaultHit()
	f.store.disk.SetFault(powerloss.Fault{})
	switch {
	case err == nil:
		err = f.history.checkStep(f.Context(), f.store, n, says, false)
	case !met:
		err = fmt.Errorf("it fails without a fault: %w", err)
	case f.results != nil && !errors.Is(err, f.results):
		err = fmt.Errorf("%w; want %w", err, f.results)
	default:
		f.count.met++
		f.count.failed++
		return f.checkAfterFailure(n)
	}
	if err != nil {
		f.Fatalf("step %d, %s, trouble %d: %v", n, step.name, at, err)
	}
	if met {
		f.count.met++
		f.count.unnoticed++
		f.undo()
	}
	return met
}

// checkAfterFailure checks the store after a step has failed. It always returns true.
func (f *faultyRun) checkAfterFailure(n int) bool {
	f.Helper()
	f.losePower(n, 0.05)
	switch done, err := f.isDone(n); {
	case err != nil:
		f.Fatalf("step %d, %s: %v", n, f.history.steps[n].name, err)
	case done:
		f.count.unknown++
		if _, err := f.history.continueFrom(f.Context(), f.store, n, true, n+1); err != nil {
			f.Fatal(err)
		}
		f.undo()
	case !f.opened:
		f.undo()
	}
	return true
}

// isDone reports whether a failed step was done. A step that opens the store can be repeated at
// once.
func (f *faultyRun) isDone(n int) (done bool, err error) {
	if f.store.Store == nil {
		f.store.disk.WithoutFaults(func() { err = f.store.open(f.Context()) })
	}
	if err == nil {
		done, err = f.history.isDone(f.Context(), f.store, n)
	}
	return done, err
}

// undo undoes a step.
func (f *faultyRun) undo() {
	f.Helper()
	f.begin(f.before)
	if !f.opened {
		return
	}
	if err := f.store.open(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// losePower checks, with a probability, what a power loss would leave now.
func (f *faultyRun) losePower(steps int, likely float64) {
	f.Helper()
	if f.rand.Float64() > likely {
		return
	}
	f.count.pulls++
	session := powerSession{disk: f.store.disk, from: steps}
	if _, err := f.history.losePower(f, session, f.store.disk.Changes(), powerloss.RandomSurvival(f.rand), steps+1); err != nil {
		f.Fatalf("after power loss: %v", err)
	}
}
