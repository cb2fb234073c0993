package postgres

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// Another server counts its transactions from the beginning. Readers of the feed continue, with
// cursors from before and after the backup.
func TestFeed_ContinuesOnAnotherServer(t *testing.T) {
	old, other := pgtest.New(t), pgtest.Start(t)
	mustExec(t, raw(t, old), `DO $$ BEGIN FOR n IN 1 .. 5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	there := mustOpen(t, old, Config{})
	fixture.CreateRun(t, there, "before")
	runs, atBackup := feedEvents(t, there, "")
	if want := []string{"before 1"}; !slices.Equal(runs, want) {
		t.Fatalf("the feed has %q, want %q", runs, want)
	}
	moved := other.Database(t)
	other.Restore(t, "fermata", old, moved)
	fixture.CreateRun(t, there, "lost")
	_, ahead := feedEvents(t, there, atBackup)

	for range 2 { // the second time there is nothing to shift
		here := mustOpen(t, moved, Config{})
		if runs, _ := feedEvents(t, here, ""); len(runs) == 0 || runs[0] != "before 1" {
			t.Errorf("from the beginning the feed has %q", runs)
		}
	}
	here := mustOpen(t, moved, Config{})
	fixture.CreateRun(t, here, "after")
	for place, after := range map[string]string{"the backup": atBackup, "what is lost": ahead} {
		if runs, _ := feedEvents(t, here, after); !slices.Equal(runs, []string{"after 1"}) {
			t.Errorf("after %s the feed has %q", place, runs)
		}
	}
}
