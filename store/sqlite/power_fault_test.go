//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/powerloss"
)

// Operations on a file, in every call of the port and in Open, fail: each once in a soak, every second one else. Then the call fails, or does what it should;
// nothing is done by halves, what was acknowledged stays, and the call comes through when it is repeated on the same store.
func TestCrash_PowerFault_AnyFileOperationMayFail(t *testing.T) {
	skipUnderRace(t)
	for _, test := range []struct {
		name    string
		trouble powerloss.Fault
		says    error // what a call that fails says, if that is known
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
			// Without, and with what SQLite does after some commits: nobody waits for it, and it may fail unnoticed.
			live(newHistory(t, sequentialScenarios(), `PRAGMA wal_autocheckpoint = 0`))
			short := append([]powerStep{restartStep, restartStep}, approvedScenario("r")[:5]...)
			live(newHistory(t, short, `PRAGMA wal_autocheckpoint = 10`, `PRAGMA journal_size_limit = 0`))
			for range scaledCount(0, 5) {
				live(randomHistory(t, seed, interleavedScenarios))
				seed++
			}
		})
	}
}

// Whoever starts a server again on a disk that is full is told so. The file writes the log cannot grow then, and SQLite calls that an I/O error. (Of a write it may come after what was
// written is on the disk, so there it does not say that nothing was changed.)
func TestCrash_PowerFault_FullDiskAtOpenReturnsErrFull(t *testing.T) {
	trouble := powerloss.Fault{Kinds: []powerloss.Kind{powerloss.Writing, powerloss.Mapping}, Err: syscall.ENOSPC}
	f := &faultyRun{T: t, history: newHistory(t, []powerStep{restartStep, restartStep}), fault: trouble, results: ErrFull, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
	f.run()
}

// A quota that is used up, or a file that may grow no further, is no full disk to SQLite, but an I/O error. It is said, so that whoever asks whether the store can be written to is told the truth.
func TestCrash_PowerFault_QuotaReturnsErrDisk(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EDQUOT, syscall.EFBIG} {
		trouble := powerloss.Fault{Kinds: []powerloss.Kind{powerloss.Writing}, Err: errno}
		f := &faultyRun{T: t, history: newHistory(t, []powerStep{restartStep, createStep("r", 0), saveStep("r", 1, 0, 5_000)}), fault: trouble, results: ErrDisk, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
		f.run()
	}
}

// In a group, too, any operation may fail. Who was told that it is done finds it done, also after a power loss; who was told nothing of it may repeat it; and then
// everything is as it would be without trouble.
func TestCrash_PowerFault_AnyOperationOfAGroupMayFail(t *testing.T) {
	skipUnderRace(t)
	const spilling = `PRAGMA cache_size = 1` // so that a transaction writes to its log before it commits
	var begin, saves []powerStep
	for _, run := range []string{"a", "b", "c"} {
		begin, saves = append(begin, createStep(run, 0)), append(saves, saveStep(run, 1, 0, 50_000))
	}
	h := newHistory(t, append(append([]powerStep{restartStep}, begin...), groupStep(saves...)), `PRAGMA wal_autocheckpoint = 0`, spilling)
	r := rand.New(rand.NewPCG(newPowerSeed(t), 4))
	told := map[int]int{} // how often so many of the three were done
	for _, trouble := range []powerloss.Fault{
		{Kinds: powerloss.Kinds(), Err: syscall.EIO},
		{Kinds: []powerloss.Kind{powerloss.Writing}, Err: syscall.ENOSPC},
	} {
		for trouble.At = 1; ; trouble.At += scaledCount(3, 1) {
			done, met := groupWithFault(t, h, saves, trouble, r)
			if !met {
				break
			}
			told[done]++
		}
	}
	t.Logf("told that it is done, of three: %v", told)
	if told[0] == 0 || told[3] == 0 {
		t.Error("no group failed, or none came through after trouble")
	}
}

// groupWithFault does the last step of a history, a group, with trouble in one of its operations, and says how many of its writes came through.
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
				t.Fatalf("trouble %d: write %d was told %v; repeated, it says %q, %v", trouble.At, n, errs[n], says, err)
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

// faultyRun lives a history in which everything fails that can.
type faultyRun struct {
	*testing.T
	history *powerHistory
	rand    *rand.Rand
	fault   powerloss.Fault
	results error

	store  *powerStore
	before powerloss.Image // what is in the book before the step
	opened bool            // and whether it is open then
	count  struct{ met, failed, unnoticed, unknown, pulls int }
}

func (f *faultyRun) run() {
	f.begin(nil)
	defer func() { f.store.discard() }()
	for n := range f.history.steps {
		f.before, f.opened = f.image(), f.store.Store != nil
		// In a soak each operation fails once; else every second one, those in between in the next step.
		stride := scaledCount(2, 1)
		for at := 1 + n%stride; f.try(n, at); at += stride {
		}
		f.losePower(n+1, 1) // syncs have failed by now, and came through when they were repeated
	}
	f.Logf("%d operations failed: %d calls said so (%d of them were done nevertheless), %d did not notice; and %d plug-pulls",
		f.count.met, f.count.failed, f.count.unknown, f.count.unnoticed, f.count.pulls)
	if f.count.failed == 0 || f.count.pulls == 0 {
		f.Error("nothing failed")
	}
}

// begin makes a book of an image, in place of that which there is.
func (f *faultyRun) begin(image powerloss.Image) {
	f.Helper()
	if f.store != nil {
		f.store.discard()
	}
	f.store = newPowerStore(f, image, f.history.settings...)
}

// dumpTables is what the process sees, synced or not.
func (f *faultyRun) image() powerloss.Image {
	all := powerloss.Survival{Rand: f.rand, Sector: 512, Keep: 1}
	return f.store.disk.LosePower(f.store.disk.Changes(), all)
}

// try does a step, with trouble in one of its operations. It says whether it came to that, and leaves the step undone then.
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
		err = fmt.Errorf("it fails without trouble: %w", err)
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

// failed looks at the book after a step has failed. It always returns true.
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

// find looks whether a step that has failed is done nevertheless. A step that was to open the book can be repeated at once.
func (f *faultyRun) isDone(n int) (done bool, err error) {
	if f.store.Store == nil {
		f.store.disk.WithoutFaults(func() { err = f.store.open(f.Context()) })
	}
	if err == nil {
		done, err = f.history.isDone(f.Context(), f.store, n)
	}
	return done, err
}

// goBack undoes a step.
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

// pull sometimes looks what a power loss would leave now.
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
