//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/plugpull"
)

// Operations on a file, in every call of the port and in Open, fail: each once in a soak, every second one else. Then the call fails, or does what it should;
// nothing is done by halves, what was acknowledged stays, and the call comes through when it is repeated on the same store.
func TestCrash_PowerFault_AnyOperationMayFail(t *testing.T) {
	slowUnderRace(t)
	for _, test := range []struct {
		name    string
		trouble plugpull.Trouble
		says    error // what a call that fails says, if that is known
	}{
		{"I/O error", plugpull.Trouble{Kinds: plugpull.Kinds(), Err: syscall.EIO}, nil},
		{"no space", plugpull.Trouble{Kinds: []plugpull.Kind{plugpull.Writing}, Err: syscall.ENOSPC}, ErrFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			seed := newPowerSeed(t)
			live := func(h *powerHistory) {
				f := &faultyLife{T: t, history: h, trouble: test.trouble, says: test.says, rand: rand.New(rand.NewPCG(seed, 2))}
				f.live()
			}
			// Without, and with what SQLite does after some commits: nobody waits for it, and it may fail unnoticed.
			live(newHistory(t, livesInOrder(), `PRAGMA wal_autocheckpoint = 0`))
			short := append([]powerStep{restart, restart}, approvedLife("r")[:5]...)
			live(newHistory(t, short, `PRAGMA wal_autocheckpoint = 10`, `PRAGMA journal_size_limit = 0`))
			for range soaked(0, 5) {
				live(drawHistory(t, seed, mixedLives))
				seed++
			}
		})
	}
}

// Whoever starts a server again on a disk that is full is told so. The file beside the log cannot grow then, and SQLite calls that an I/O error. (Of a write it may come after what was
// written is on the disk, so there it does not say that nothing was changed.)
func TestCrash_PowerFault_AFullDiskIsSaidAtOpen(t *testing.T) {
	trouble := plugpull.Trouble{Kinds: []plugpull.Kind{plugpull.Writing, plugpull.Mapping}, Err: syscall.ENOSPC}
	f := &faultyLife{T: t, history: newHistory(t, []powerStep{restart, restart}), trouble: trouble, says: ErrFull, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
	f.live()
}

// A quota that is used up, or a file that may grow no further, is no full disk to SQLite, but an I/O error. It is said, so that whoever asks whether the store can be written to is told the truth.
func TestCrash_PowerFault_AQuotaIsADiskThatRefuses(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EDQUOT, syscall.EFBIG} {
		trouble := plugpull.Trouble{Kinds: []plugpull.Kind{plugpull.Writing}, Err: errno}
		f := &faultyLife{T: t, history: newHistory(t, []powerStep{restart, createStep("r", 0), saveStep("r", 1, 0, 5_000)}), trouble: trouble, says: ErrDisk, rand: rand.New(rand.NewPCG(newPowerSeed(t), 2))}
		f.live()
	}
}

// In a group, too, any operation may fail. Who was told that it is done finds it done, also after a power loss; who was told nothing of it may repeat it; and then
// everything is as it would be without trouble.
func TestCrash_PowerFault_AnyOperationOfAGroupMayFail(t *testing.T) {
	slowUnderRace(t)
	const spilling = `PRAGMA cache_size = 1` // so that a transaction writes to its log before it commits
	var begin, saves []powerStep
	for _, run := range []string{"a", "b", "c"} {
		begin, saves = append(begin, createStep(run, 0)), append(saves, saveStep(run, 1, 0, 50_000))
	}
	h := newHistory(t, append(append([]powerStep{restart}, begin...), groupStep(saves...)), `PRAGMA wal_autocheckpoint = 0`, spilling)
	r := rand.New(rand.NewPCG(newPowerSeed(t), 4))
	told := map[int]int{} // how often so many of the three were done
	for _, trouble := range []plugpull.Trouble{
		{Kinds: plugpull.Kinds(), Err: syscall.EIO},
		{Kinds: []plugpull.Kind{plugpull.Writing}, Err: syscall.ENOSPC},
	} {
		for trouble.At = 1; ; trouble.At += soaked(3, 1) {
			done, met := groupInTrouble(t, h, saves, trouble, r)
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

// groupInTrouble does the last step of a history, a group, with trouble in one of its operations, and says how many of its writes came through.
func groupInTrouble(t *testing.T, h *powerHistory, writes []powerStep, trouble plugpull.Trouble, r *rand.Rand) (done int, met bool) {
	t.Helper()
	b := newPowerBook(t, nil, h.settings...)
	defer b.throwAway()
	last := len(h.steps) - 1
	if _, err := h.goOn(t.Context(), b, 0, false, last); err != nil {
		t.Fatal(err)
	}
	b.now = powerTime(last)
	errs := make([]error, len(writes))
	var calls []func(*Store)
	for n, step := range writes {
		calls = append(calls, func(s *Store) { _, errs[n] = step.says(t.Context(), &powerBook{Store: s}) })
	}
	b.disk.Expect(trouble)
	together(b.Store, calls...)
	met = b.disk.Met()
	b.disk.Expect(plugpull.Trouble{})

	after := newPowerBook(t, b.disk.Pull(b.disk.Moment(), plugpull.Draw(r)), h.settings...)
	defer after.throwAway()
	if err := errors.Join(after.open(t.Context()), after.sound(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, book := range []*powerBook{b, after} {
		book.now = powerTime(last)
		for n, step := range writes {
			says, err := step.says(t.Context(), book)
			if err != nil || errs[n] == nil && says != step.again {
				t.Fatalf("trouble %d: write %d was told %v; repeated, it says %q, %v", trouble.At, n, errs[n], says, err)
			}
		}
		if state, err := book.state(t.Context()); err != nil || state != h.states[last+1] {
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

// faultyLife lives a history in which everything fails that can.
type faultyLife struct {
	*testing.T
	history *powerHistory
	rand    *rand.Rand
	trouble plugpull.Trouble
	says    error

	book   *powerBook
	before plugpull.Image // what is in the book before the step
	opened bool           // and whether it is open then
	count  struct{ met, failed, unnoticed, unknown, pulls int }
}

func (f *faultyLife) live() {
	f.begin(nil)
	defer func() { f.book.throwAway() }()
	for n := range f.history.steps {
		f.before, f.opened = f.everything(), f.book.Store != nil
		// In a soak each operation fails once; else every second one, those in between in the next step.
		stride := soaked(2, 1)
		for at := 1 + n%stride; f.try(n, at); at += stride {
		}
		f.pull(n+1, 1) // syncs have failed by now, and came through when they were repeated
	}
	f.Logf("%d operations failed: %d calls said so (%d of them were done nevertheless), %d did not notice; and %d plug-pulls",
		f.count.met, f.count.failed, f.count.unknown, f.count.unnoticed, f.count.pulls)
	if f.count.failed == 0 || f.count.pulls == 0 {
		f.Error("nothing failed")
	}
}

// begin makes a book of an image, in place of that which there is.
func (f *faultyLife) begin(image plugpull.Image) {
	f.Helper()
	if f.book != nil {
		f.book.throwAway()
	}
	f.book = newPowerBook(f, image, f.history.settings...)
}

// everything is what the process sees, synced or not.
func (f *faultyLife) everything() plugpull.Image {
	all := plugpull.Fate{Rand: f.rand, Sector: 512, Keep: 1}
	return f.book.disk.Pull(f.book.disk.Moment(), all)
}

// try does a step, with trouble in one of its operations. It says whether it came to that, and leaves the step undone then.
func (f *faultyLife) try(n, at int) (met bool) {
	f.Helper()
	step := f.history.steps[n]
	f.book.now = powerTime(n)
	f.trouble.At = at
	f.book.disk.Expect(f.trouble)
	says, err := step.says(f.Context(), f.book)
	met = f.book.disk.Met()
	f.book.disk.Expect(plugpull.Trouble{})
	switch {
	case err == nil:
		err = f.history.same(f.Context(), f.book, n, says, false)
	case !met:
		err = fmt.Errorf("it fails without trouble: %w", err)
	case f.says != nil && !errors.Is(err, f.says):
		err = fmt.Errorf("%w; want %w", err, f.says)
	default:
		f.count.met++
		f.count.failed++
		return f.failed(n)
	}
	if err != nil {
		f.Fatalf("step %d, %s, trouble %d: %v", n, step.name, at, err)
	}
	if met {
		f.count.met++
		f.count.unnoticed++
		f.goBack()
	}
	return met
}

// failed looks at the book after a step has failed. It always returns true.
func (f *faultyLife) failed(n int) bool {
	f.Helper()
	f.pull(n, 0.05)
	switch done, err := f.find(n); {
	case err != nil:
		f.Fatalf("step %d, %s: %v", n, f.history.steps[n].name, err)
	case done:
		f.count.unknown++
		if _, err := f.history.goOn(f.Context(), f.book, n, true, n+1); err != nil {
			f.Fatal(err)
		}
		f.goBack()
	case !f.opened:
		f.goBack()
	}
	return true
}

// find looks whether a step that has failed is done nevertheless. A step that was to open the book can be repeated at once.
func (f *faultyLife) find(n int) (done bool, err error) {
	if f.book.Store == nil {
		f.book.disk.Aside(func() { err = f.book.open(f.Context()) })
	}
	if err == nil {
		done, err = f.history.find(f.Context(), f.book, n)
	}
	return done, err
}

// goBack undoes a step.
func (f *faultyLife) goBack() {
	f.Helper()
	f.begin(f.before)
	if !f.opened {
		return
	}
	if err := f.book.open(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// pull sometimes looks what a power loss would leave now.
func (f *faultyLife) pull(steps int, likely float64) {
	f.Helper()
	if f.rand.Float64() > likely {
		return
	}
	f.count.pulls++
	session := powerSession{disk: f.book.disk, from: steps}
	if _, err := f.history.pull(f, session, f.book.disk.Moment(), plugpull.Draw(f.rand), steps+1); err != nil {
		f.Fatalf("after power loss: %v", err)
	}
}
