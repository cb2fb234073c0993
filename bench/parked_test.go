package main

import (
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// Expiring runs are spread over accounts; each has some.
func TestParked_ExpiringRunsSpanAccounts(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		const runs = 300
		l, err := newParkedDatabase(t.Context(), db, runs)
		if err != nil {
			t.Fatal(err)
		}
		expired, err := db.expire(t.Context(), l.place)
		if err != nil || expired != runs/expiringShare {
			t.Errorf("%d requests have expired, %v; want %d", expired, err, runs/expiringShare)
		}
		st, err := db.open(t.Context(), l.place)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for n := range tenantCount(runs) {
			waiting, err := st.List(t.Context(), expiringAccount(n), store.RunFilter{})
			if err != nil || len(waiting) != perTenant {
				t.Errorf("%s has %d runs, %v; want %d", expiringAccount(n), len(waiting), err, perTenant)
			}
		}
	})
}

// With ten thousand waiting runs the process is hardly larger than with none.
func TestI15_MemoryDoesNotGrowWithParkedRuns(t *testing.T) {
	for _, on := range []string{onSQLite, onPostgres} {
		t.Run(on, func(t *testing.T) {
			plan := parkedQuick
			plan.many = 10_000
			found, err := plan.measure(t.Context(), on, "parked/"+on, testRecorder())
			if err != nil {
				t.Fatal(err)
			}
			judged := 0
			for _, m := range found.list {
				t.Logf("%s: %s", m.Name, m)
				switch m.Name {
				case "more with all":
					judged++
					if !m.met() {
						t.Errorf("%s: %s, want %s", m.Name, m, m.goal())
					}
				case "expired":
					judged++
					if want := float64(plan.many / expiringShare); m.Value != want {
						t.Errorf("%g requests have expired, want %g", m.Value, want)
					}
				}
			}
			if judged != 2 {
				t.Errorf("%d metrics were checked, want 2", judged)
			}
		})
	}
}
