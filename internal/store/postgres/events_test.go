package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// feedEvents follows the feed of the account to its end.
func feedEvents(t *testing.T, s *Store, after string) (runs []string, next string) {
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
			runs = append(runs, fmt.Sprint(e.Run, " ", e.Seq))
		}
		after = next
	}
}

// A transaction that began first and commits last must not have its events before a position that a
// reader has passed.
func TestFeed_IncludesLateCommits(t *testing.T) {
	r := newRace(t)
	fixture.CreateRun(t, r.fast, "early")
	r.pause(func() {
		if _, err := r.slow.Create(t.Context(), fixture.NewRun("slow")); err != nil {
			t.Error(err)
		}
	})
	fixture.CreateRun(t, r.fast, "fast")
	runs, next := feedEvents(t, r.fast, "")
	if want := []string{"early 1"}; !slices.Equal(runs, want) {
		t.Errorf("during an open transaction the feed has %q, want %q", runs, want)
	}
	r.resume()
	runs, _ = feedEvents(t, r.fast, next)
	if want := []string{"slow 1", "fast 1"}; !slices.Equal(runs, want) {
		t.Errorf("afterwards it has %q, want %q", runs, want)
	}
}

// A transaction that waits for a locked run gets its number afterwards: the events of one run are
// in the same order by their numbers and by their transactions.
func TestFeed_EventsOfARunAreInTransactionOrder(t *testing.T) {
	r := newRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i", "j")
	r.between(
		r.decides(r.slow, fixture.Decision("r", "1", store.VerdictApprove, "i")),
		func() {
			// A transaction with its own number in between.
			if _, err := r.fast.Create(t.Context(), fixture.NewRun("other")); err != nil {
				t.Error(err)
			}
			r.decides(r.fast, fixture.Decision("r", "2", store.VerdictApprove, "j"))()
		},
	)
	var disordered int
	err := r.conn.QueryRow(t.Context(), `
SELECT count(*) FROM fermata.events AS a JOIN fermata.events AS b ON b.run_key = a.run_key AND a.number < b.number
WHERE (a.xid, a.id) >= (b.xid, b.id)`).Scan(&disordered)
	if err != nil || disordered > 0 {
		t.Errorf("%d pairs are out of order, %v", disordered, err)
	}
	if runs, _ := feedEvents(t, r.fast, ""); len(runs) != 7 || runs[6] != "r 6" {
		t.Errorf("the feed has %q", runs)
	}
}

func TestFeed_ForeignCursorReturnsErrInvalid(t *testing.T) {
	r := newRace(t)
	fixture.CreateRun(t, r.fast, "r")
	_, next := feedEvents(t, r.fast, "")
	for _, cursor := range []string{
		"0" + next, next + "0:", next + ":", " " + next, "1", "1:", ":1", "1:0", "1:-1", "-1:1", "+1:1", "x:1", "1:x", "18446744073709551615:1", "18446744073709551616:1",
	} {
		if events, _, err := r.fast.Feed(t.Context(), "acme", cursor, 0); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q leads to %+v, %v; want ErrKey", cursor, events, err)
		}
	}
}
