//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/powerloss"
	"github.com/fermata-go/fermata/internal/testtier"
)

const lossesPerHistory = 20

// I9, and with it I1, I2 and I3: acknowledged writes survive a power loss, and no write is partial.
// Unacknowledged calls can be repeated, and everything continues as without the power loss.
func TestCrash_PowerLoss_I9_AcknowledgedWritesSurvive(t *testing.T) {
	skipUnderRace(t)
	tally, first := losePowerRepeatedly(t, testtier.Count(40, 200, 10_000))
	t.Log(tally)
	if first != nil {
		t.Error(first)
	}
}

// At no moment during creation may Open leave a file that a later Open rejects.
func TestCrash_PowerLoss_DuringCreationStoreStillOpens(t *testing.T) {
	skipUnderRace(t)
	h := newHistory(t, []powerStep{restartStep, createStep("r", 0)})
	r := rand.New(rand.NewPCG(newPowerSeed(t), 3))
	for moment := 0; moment < h.first.answered[0]; moment += testtier.Count(5, 1, 1) {
		for range testtier.Count(1, 1, 20) {
			if _, err := h.losePower(t, h.first, moment, powerloss.RandomSurvival(r), len(h.steps)); err != nil {
				t.Fatalf("moment %d: %v", moment, err)
			}
		}
	}
}

// These settings lose acknowledged writes. They prove that the tests can fail.
func TestCrash_PowerLoss_WeakSyncSettingsLoseWrites(t *testing.T) {
	skipUnderRace(t)
	losses := testtier.Count(20, 40, 40)
	normal, _ := losePowerRepeatedly(t, losses, `PRAGMA synchronous = NORMAL`)
	t.Log("synchronous = NORMAL:", normal)
	if normal.lost == 0 {
		t.Error("nothing was lost although commits were not synced")
	}
	if normal.partial+normal.damaged > 0 {
		t.Error("a commit that is not synced is lost as a whole, and the file stays intact")
	}
	off, _ := losePowerRepeatedly(t, losses, `PRAGMA synchronous = OFF`)
	t.Log("synchronous = OFF:", off)
	if off.lost == 0 || off.partial+off.damaged == 0 {
		t.Error("nothing was lost, or no file was damaged, although nothing was synced")
	}
}

// A seed must reproduce its history.
func TestCrash_PowerLoss_SameSeedGivesSameHistory(t *testing.T) {
	skipUnderRace(t)
	seed := newPowerSeed(t)
	a, b := randomHistory(t, seed, groupedScenarios), randomHistory(t, seed, groupedScenarios)
	if !slices.Equal(a.first.answered, b.first.answered) || !slices.Equal(a.states, b.states) || !slices.Equal(a.results, b.results) {
		t.Errorf("acknowledged at %v and then at %v", a.first.answered, b.first.answered)
	}
}

// powerTally counts the results of power losses.
type powerTally struct{ losses, again, lost, partial, damaged int }

func (p powerTally) String() string {
	return fmt.Sprintf("%d power losses, %d of them during the recovery from another: %d lost an acknowledged write, %d left a partial write, %d damaged the file",
		p.losses, p.again, p.lost, p.partial, p.damaged)
}

func (p *powerTally) count(err error) {
	p.losses++
	switch {
	case errors.Is(err, errLost):
		p.lost++
	case errors.Is(err, errDamaged):
		p.damaged++
	case err != nil:
		p.partial++
	}
}

// losePowerRepeatedly loses power at random moments of random histories.
func losePowerRepeatedly(t *testing.T, pulls int, settings ...string) (tally powerTally, first error) {
	t.Helper()
	for seed := newPowerSeed(t); tally.losses < pulls; seed++ {
		h := randomHistory(t, seed, groupedScenarios, settings...)
		r := rand.New(rand.NewPCG(seed, 1))
		upTo := len(h.steps) // once for each history
		for n := 0; n < lossesPerHistory && tally.losses < pulls; n++ {
			if err := losePowerSometimes(t, h, r, upTo, &tally); err != nil && first == nil {
				first = fmt.Errorf("seed %d, pull %d: %w", seed, n, err)
			}
			upTo = 0
		}
	}
	return tally, first
}

// losePowerSometimes loses power, continues for some steps, and may lose power again.
func losePowerSometimes(t *testing.T, h *powerHistory, r *rand.Rand, upTo int, tally *powerTally) error {
	t.Helper()
	moment := r.IntN(h.first.disk.Changes() + 1)
	upTo = max(upTo, h.first.acknowledged(moment)+3)
	again, err := h.losePower(t, h.first, moment, powerloss.RandomSurvival(r), upTo)
	tally.count(err)
	if err != nil || r.IntN(3) > 0 {
		return err
	}
	second := r.IntN(again.disk.Changes() + 1)
	_, err = h.losePower(t, again, second, powerloss.RandomSurvival(r), upTo)
	tally.count(err)
	tally.again++
	if err != nil {
		return fmt.Errorf("the second of two, at moments %d and %d: %w", moment, second, err)
	}
	return nil
}
