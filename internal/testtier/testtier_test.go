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
