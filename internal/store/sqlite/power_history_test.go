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

// powerHistory is a sequence of steps without faults, with their results.
type powerHistory struct {
	settings []string
	steps    []powerStep
	results  []string
	states   []string // of the store before each step, and after the last
	first    powerSession
}

// powerSession is a part of a history on one disk: its first step, and when each step was
// acknowledged.
type powerSession struct {
	disk     *powerloss.Disk
	from     int
	answered []int
}

// acknowledged returns the number of steps that were acknowledged at a moment.
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

// randomHistory creates a history from a seed. Additional settings follow those that the seed
// selects.
func randomHistory(t testing.TB, seed uint64, draw func(*rand.Rand) []powerStep, settings ...string) *powerHistory {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	// The WAL is moved into the file at this length. With the default a short history would never
	// reach it.
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
			h.states = append(h.states, state) // reading the state creates the store
		}
		h.results, h.states = append(h.results, says), append(h.states, state)
	}
}

// Violations.
var (
	errLost      = errors.New("an acknowledged write is lost")
	errPartial   = errors.New("the store was never in this state")
	errDamaged   = errors.New("the file is damaged")
	errDifferent = errors.New("it does not continue as without a fault")
)

// losePower loses power at a moment of a session. It checks that everything acknowledged survived,
// and continues up to a step.
func (h *powerHistory) losePower(t testing.TB, s powerSession, moment int, fate powerloss.Survival, upTo int) (powerSession, error) {
	t.Helper()
	image := s.disk.LosePower(moment, fate)
	image["fermata.db-shm"] = junk(fate.Rand) // it is never synced, so its content must not matter
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

// check verifies an intact store with a number of steps done, and reports whether the next one,
// which was not acknowledged, is done too.
func (h *powerHistory) check(ctx context.Context, b *powerStore, steps int) (next bool, err error) {
	if err := b.checkIntegrity(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return h.isDone(ctx, b, steps)
}

// isDone reports whether one step more than those is done.
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

// continueFrom runs the steps as before. It repeats the first one if it was done already.
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

// checkStep compares the result and the state of a step with those without faults.
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
