// Package booktest writes books of runs in few words, for the tests of single stores; what all stores have in common is in store/storetest. Everything is
// of the account acme.
package booktest

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
)

// Long is a lease that does not end during a test.
const Long = time.Hour

// NewRun is a run that is about to begin.
func NewRun(id string) store.NewRun {
	return store.NewRun{Account: "acme", ID: id, StateKey: "key-" + id, Owner: "test", Lease: Long}
}

// Begin creates a run.
func Begin(t testing.TB, s store.Store, id string) store.Lease {
	t.Helper()
	lease, err := s.Create(t.Context(), NewRun(id))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// Rest gives a run back with these questions; the one called due has a deadline.
func Rest(t testing.TB, s store.Store, lease store.Lease, applied []string, ids ...string) {
	t.Helper()
	if status, err := s.Rest(t.Context(), lease, Asking(applied, ids...)); err != nil || status != store.Waiting {
		t.Fatal(status, err)
	}
}

// Asking is how a run rests that asks these questions.
func Asking(applied []string, ids ...string) store.Rest {
	rest := store.Rest{Status: store.Waiting, Applied: applied, Outcome: []byte("asks")}
	for _, id := range ids {
		n := store.NewInterrupt{ID: id, Data: []byte("data"), Shown: "shown", Action: "action-" + id}
		if id == "due" {
			n.Timeout = time.Hour
		}
		rest.Open = append(rest.Open, n)
	}
	return rest
}

// Say is a decision of some questions.
func Say(run, resume string, verdict store.Verdict, ids ...string) store.Decision {
	d := store.Decision{Account: "acme", Run: run, ResumeID: resume, Actor: "ann", Body: "body"}
	for _, id := range ids {
		a := store.Answer{Interrupt: id, Verdict: verdict, Shown: "shown"}
		if verdict == store.Approve {
			a.Final = "action-" + id
		}
		d.Answers = append(d.Answers, a)
	}
	return d
}

// Accepted makes a decision, which has to be taken.
func Accepted(t testing.TB, s store.Store, d store.Decision) {
	t.Helper()
	if receipt, err := s.Decide(t.Context(), d); err != nil || receipt.Result != store.Accepted {
		t.Fatal(receipt, err)
	}
}

// Claim takes the next run, which has to be this one.
func Claim(t testing.TB, s store.Store, run string) store.Lease {
	t.Helper()
	work, err := s.Claim(t.Context(), store.Claim{Owner: "test", Lease: Long})
	if err != nil || work == nil || work.Run.ID != run {
		t.Fatal(work, err)
	}
	return work.Lease
}
