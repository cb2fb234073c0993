package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/store/fixture"
)

// feedRuns returns the runs of the events after a cursor, and the next cursor.
func feedRuns(t *testing.T, s *Store, after string) (runs []string, next string) {
	t.Helper()
	events, next, err := s.Feed(t.Context(), "acme", after, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		runs = append(runs, fmt.Sprint(e.Run, " ", e.Seq))
	}
	return runs, next
}

// A backup replaces the file. Readers of the feed continue: those with a cursor from before the
// backup, and those with a cursor from after it, which miss only what was lost. A backup may be
// restored more than once, and may be empty.
func TestFeed_ContinuesAfterRestoredBackup(t *testing.T) {
	for _, first := range []string{"empty", "before"} {
		t.Run(first, func(t *testing.T) {
			path, backup := filepath.Join(t.TempDir(), "fermata.db"), filepath.Join(t.TempDir(), "backup.db")
			there := mustOpen(t, path)
			if first != "empty" {
				fixture.CreateRun(t, there, first)
			}
			_, atBackup := feedRuns(t, there, "")
			if _, err := there.writer.ExecContext(t.Context(), `VACUUM INTO ?1`, backup); err != nil {
				t.Fatal(err)
			}
			ahead := atBackup
			for _, time := range []string{"first", "second"} {
				fixture.CreateRun(t, there, "lost, the "+time)
				_, ahead = feedRuns(t, there, ahead)
				if err := there.Close(); err != nil {
					t.Fatal(err)
				}
				copyFile(t, backup, path)
				there = mustOpen(t, path)
				fixture.CreateRun(t, there, "after")
				for place, after := range map[string]string{"the backup": atBackup, "what is lost": ahead} {
					if runs, _ := feedRuns(t, there, after); !slices.Equal(runs, []string{"after 1"}) {
						t.Errorf("the %s time, after %s the feed has %q", time, place, runs)
					}
				}
			}
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
