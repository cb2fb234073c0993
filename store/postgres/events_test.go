package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
)

// fed follows the feed of the account to its end.
func fed(t *testing.T, s *Store, after string) (runs []string, next string) {
	t.Helper()
	for {
		events, next, err := s.Feed(t.Context(), "acme", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return runs, next
		}
		for _, e := range events {
			runs = append(runs, fmt.Sprint(e.Run, " ", e.Number))
		}
		after = next
	}
}

// A transaction that began first and commits last would have its events at a place that a follower has passed.
func TestFeed_MissesNobodyWhoCommitsLate(t *testing.T) {
	r := newRace(t)
	booktest.Begin(t, r.fast, "early")
	r.pause(func() {
		if _, err := r.slow.Create(t.Context(), booktest.NewRun("slow")); err != nil {
			t.Error(err)
		}
	})
	booktest.Begin(t, r.fast, "fast")
	runs, next := fed(t, r.fast, "")
	if want := []string{"early 1"}; !slices.Equal(runs, want) {
		t.Errorf("while one is on its way the feed has %q, want %q", runs, want)
	}
	r.resume()
	runs, _ = fed(t, r.fast, next)
	if want := []string{"slow 1", "fast 1"}; !slices.Equal(runs, want) {
		t.Errorf("then it has %q, want %q", runs, want)
	}
}

// Whoever waits for a run that somebody else has in hand gets his number afterwards: the events of one run are in one order, by their
// numbers and by their transactions.
func TestFeed_TheOrderOfARunIsThatOfItsTransactions(t *testing.T) {
	r := newRace(t)
	booktest.Rest(t, r.fast, booktest.Begin(t, r.fast, "r"), nil, "i", "j")
	r.between(
		r.accepts(r.slow, booktest.Say("r", "1", store.Approve, "i")),
		func() {
			// A transaction with a number of its own, in between.
			if _, err := r.fast.Create(t.Context(), booktest.NewRun("other")); err != nil {
				t.Error(err)
			}
			r.accepts(r.fast, booktest.Say("r", "2", store.Approve, "j"))()
		},
	)
	var disordered int
	err := r.conn.QueryRow(t.Context(), `
SELECT count(*) FROM fermata.events AS a JOIN fermata.events AS b ON b.run_key = a.run_key AND a.number < b.number
WHERE (a.xid, a.id) >= (b.xid, b.id)`).Scan(&disordered)
	if err != nil || disordered > 0 {
		t.Errorf("%d pairs are out of order, %v", disordered, err)
	}
	if runs, _ := fed(t, r.fast, ""); len(runs) != 7 || runs[6] != "r 6" {
		t.Errorf("the feed has %q", runs)
	}
}

func TestFeed_OnlyCursorsOfItsOwn(t *testing.T) {
	r := newRace(t)
	booktest.Begin(t, r.fast, "r")
	_, next := fed(t, r.fast, "")
	for _, cursor := range []string{
		"0" + next, next + "0:", next + ":", " " + next, "1", "1:", ":1", "1:0", "1:-1", "-1:1", "+1:1", "x:1", "1:x", "18446744073709551615:1", "18446744073709551616:1",
	} {
		if events, _, err := r.fast.Feed(t.Context(), "acme", cursor, 0); !errors.Is(err, store.ErrKey) {
			t.Errorf("%q leads to %+v, %v; want ErrKey", cursor, events, err)
		}
	}
}
