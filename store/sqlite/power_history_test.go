//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/powerloss"
)

// powerHistory is what happened to a book without any trouble.
type powerHistory struct {
	settings []string
	steps    []powerStep
	results  []string
	states   []string // of the book before each step, and after the last
	first    powerSession
}

// powerSession is a part of a history on one disk: from a step on, and until when each was answered.
type powerSession struct {
	disk     *powerloss.Disk
	from     int
	answered []int
}

// acknowledged is the step up to which all were answered at a moment.
func (s powerSession) acknowledged(moment int) int {
	n := 0
	for n < len(s.answered) && s.answered[n] <= moment {
		n++
	}
	return s.from + n
}

func newHistory(t testing.TB, steps []powerStep, settings ...string) *powerHistory {
	t.Helper()
	h := &powerHistory{settings: settings, steps: steps}
	b := newPowerStore(t, nil, settings...)
	defer b.discard()
	h.record(t, b)
	return h
}

// randomHistory makes one from a seed. More settings can follow those that the seed draws.
func randomHistory(t testing.TB, seed uint64, draw func(*rand.Rand) []powerStep, settings ...string) *powerHistory {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	// When the log is so long it goes back into the file. As Open leaves it, a short history would never come that far.
	drawn := []string{
		fmt.Sprintf(`PRAGMA wal_autocheckpoint = %d`, 5+r.IntN(60)),
		fmt.Sprintf(`PRAGMA journal_size_limit = %d`, []int{0, 1 << 16, 1 << 26}[r.IntN(3)]),
	}
	return newHistory(t, draw(r), append(drawn, settings...)...)
}

func (h *powerHistory) record(t testing.TB, b *powerStore) {
	t.Helper()
	h.first.disk = b.disk
	for n, step := range h.steps {
		b.now = powerTime(n)
		says, err := step.result(t.Context(), b)
		if err != nil {
			t.Fatalf("step %d, %s: %v", n, step.name, err)
		}
		h.first.answered = append(h.first.answered, b.disk.Changes())
		state, err := b.dump(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			h.states = append(h.states, state) // to look at a book is to make it
		}
		h.results, h.states = append(h.results, says), append(h.states, state)
	}
}

// What must not be.
var (
	errLost      = errors.New("what was acknowledged is lost")
	errPartial   = errors.New("the book was never in this state")
	errDamaged   = errors.New("the file is damaged")
	errDifferent = errors.New("it does not go on as it did without trouble")
)

// pull pulls the plug of a session at a moment. It looks whether everything acknowledged is there, and goes on up to a step.
func (h *powerHistory) losePower(t testing.TB, s powerSession, moment int, fate powerloss.Survival, upTo int) (powerSession, error) {
	t.Helper()
	image := s.disk.LosePower(moment, fate)
	image["fermata.db-shm"] = junk(fate.Rand) // it is never synced, and nobody may believe what it says
	b := newPowerStore(t, image, h.settings...)
	defer b.discard()
	from := s.acknowledged(moment)
	if err := b.open(t.Context()); err != nil {
		return powerSession{}, fmt.Errorf("after step %d: %w: %w", from, errDamaged, err)
	}
	done, err := h.check(t.Context(), b, from)
	if err != nil {
		return powerSession{}, fmt.Errorf("after step %d: %w", from, err)
	}
	return h.continueFrom(t.Context(), b, from, done, upTo)
}

func junk(r *rand.Rand) []byte {
	data := make([]byte, r.IntN(40_000))
	for n := range data {
		data[n] = byte(r.Uint32())
	}
	return data
}

// look wants a sound book in which so many steps are done, and says whether the next is done as well, which nobody knows of.
func (h *powerHistory) check(ctx context.Context, b *powerStore, steps int) (next bool, err error) {
	if err := b.checkIntegrity(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return h.isDone(ctx, b, steps)
}

// find says whether one step more is done than those, which must be.
func (h *powerHistory) isDone(ctx context.Context, b *powerStore, steps int) (next bool, err error) {
	state, err := b.dump(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", errDamaged, err)
	case state == h.states[steps]:
		return false, nil
	case steps < len(h.steps) && state == h.states[steps+1]:
		return true, nil
	}
	for earlier := range steps {
		if state == h.states[earlier] {
			return false, fmt.Errorf("%w: from step %d on, %s", errLost, earlier, h.steps[earlier].name)
		}
	}
	return false, fmt.Errorf("%w (-acknowledged +found):\n%s", errPartial, diff(h.states[steps], state))
}

// goOn does steps as they were done before. The first is repeated if it was done already.
func (h *powerHistory) continueFrom(ctx context.Context, b *powerStore, from int, done bool, upTo int) (powerSession, error) {
	s := powerSession{disk: b.disk, from: from}
	for n := from; n < min(upTo, len(h.steps)); n++ {
		b.now = powerTime(n)
		says, err := h.steps[n].result(ctx, b)
		if err == nil {
			err = h.checkStep(ctx, b, n, says, done && n == from)
		}
		if err != nil {
			return s, fmt.Errorf("%w: step %d, %s: %w", errDifferent, n, h.steps[n].name, err)
		}
		s.answered = append(s.answered, b.disk.Changes())
	}
	return s, nil
}

// sameResult wants what a step said without trouble, and the state it left.
func (h *powerHistory) checkStep(ctx context.Context, b *powerStore, n int, says string, repeated bool) error {
	want := h.results[n]
	if repeated {
		want = h.steps[n].repeatedResult(want)
	}
	if says != want {
		return fmt.Errorf("it says %q; want %q", says, want)
	}
	state, err := b.dump(ctx)
	if err == nil && state != h.states[n+1] {
		err = fmt.Errorf("(-before +now):\n%s", diff(h.states[n+1], state))
	}
	return err
}

func diff(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}
