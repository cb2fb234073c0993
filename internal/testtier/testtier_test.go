package testtier_test

import (
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

func TestNeeds_SkipsOnlyInTheFastTier(t *testing.T) {
	for value, want := range map[string]bool{testtier.Fast: true, "": false, "all": false} {
		t.Setenv(testtier.Variable, value)
		var skipped bool
		t.Run("tier "+value, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			testtier.Needs(t, "a server")
		})
		if skipped != want {
			t.Errorf("with %s=%q it skips: %v, want %v", testtier.Variable, value, skipped, want)
		}
	}
}

func TestCount_GrowsWithTheTier(t *testing.T) {
	for value, want := range map[string]int{testtier.Fast: 1, "": 1, testtier.Nightly: 2, testtier.Soak: 3} {
		t.Setenv(testtier.Variable, value)
		if got := testtier.Count(1, 2, 3); got != want || testtier.IsNightly() != (want > 1) || testtier.IsSoak() != (want > 2) {
			t.Errorf("with %s=%q: count %d, nightly %v, soak %v", testtier.Variable, value, got, testtier.IsNightly(), testtier.IsSoak())
		}
	}
}
