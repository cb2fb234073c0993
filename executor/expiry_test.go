package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// statusOf is where a run stands when nothing more happens by itself.
func statusOf(t *testing.T, s store.Store, key string) store.Status {
	t.Helper()
	synctest.Wait()
	run, err := s.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	return run.Status
}

// rewrite puts another body into a request.
func rewrite(t *testing.T, s store.Store, id string, body []byte) (before []byte) {
	t.Helper()
	paper, err := s.Document(t.Context(), "acme", store.RequestDocument, id)
	if err == nil {
		err = s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{
			Kind: store.RequestDocument, ID: id, BaseRevision: paper.Revision, Body: body, Index: paper.Index, DueAt: paper.DueAt,
		}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return paper.Body
}

// A request that this process cannot read, because a newer one wrote it, does not expire behind people's backs: it is put off until somebody can.
func TestI12_WhatCannotBeReadDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		e := d.executor(t, s, func(c *executor.Config) {
			quick(time.Hour, 0)(c)
			c.Poll = 10 * time.Second
		})
		id := startDrop(t, e).Interrupts[0].ID
		other := waits(t, began(t, e, "drop-2", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
		body := rewrite(t, s, id, []byte("?"))
		e.StartWorkers()
		time.Sleep(3 * time.Hour)
		if statusOf(t, s, "drop-1") != store.StatusWaiting || statusOf(t, s, "drop-2") != store.StatusFailed {
			t.Fatalf("%s is %s; %s, which can be read, is %s", id, statusOf(t, s, "drop-1"), other, statusOf(t, s, "drop-2"))
		}
		rewrite(t, s, id, body)
		if _, err := e.Run(t.Context(), word("ann", "drop-1", "late", id, yes)); err == nil {
			t.Error("I10: it was approved after its deadline")
		}
		time.Sleep(10 * time.Minute)
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateExpired || statusOf(t, s, "drop-1") != store.StatusFailed {
			t.Errorf("it can be read again, and is %s, %v; the run is %s", doc.State, err, statusOf(t, s, "drop-1"))
		}
		agree(t, e)
	})
}

// An outage that by our clock is not over yet is no reason to let anything expire without a word.
func TestI12_AnOutageThatIsNotOverPutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := memory.NewStore(nil), new(dropper)
		e := d.executor(t, s, func(c *executor.Config) {
			quick(time.Second, time.Hour)(c)
			c.Poll = time.Second
		})
		id := startDrop(t, e).Interrupts[0].ID
		time.Sleep(2 * time.Second)
		now := time.Now()
		heard(t, s, map[string]any{"at": now, "outages": []any{map[string]time.Time{"start": now.Add(-time.Minute), "end": now.Add(3 * time.Second)}}})
		e.StartWorkers()
		time.Sleep(30 * time.Second)
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateOpen || !doc.Deadline.Equal(now.Add(time.Hour+3*time.Second)) {
			t.Fatalf("it is %s until %s, %v", doc.State, doc.Deadline, err)
		}
		time.Sleep(2 * time.Hour)
		if got := lines(t, s); statusOf(t, s, "drop-1") != store.StatusFailed || !slices.Contains(got, "request.expired") {
			t.Errorf("the run is %s, and the log says %q", statusOf(t, s, "drop-1"), got)
		}
		agree(t, e)
	})
}

// A question that has no request, or one that is over, expires with a line of its own.
func TestI12_WhatHasNoRequestExpiresWithALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "drop", Owner: "old", Lease: time.Hour})
		if err == nil {
			_, err = s.EndExecution(t.Context(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: []store.NewInterrupt{{ID: "i", Kind: "k", Timeout: time.Minute}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		e := new(dropper).executor(t, s, quick(time.Hour, 0))
		e.StartWorkers()
		time.Sleep(2 * time.Minute)
		if i, err := s.InboxItem(t.Context(), "acme", "i"); err != nil || i.Verdict != store.VerdictExpire || !slices.Contains(lines(t, s), "request.expired") {
			t.Errorf("%+v, %v, and the log says %q", i, err, lines(t, s))
		}
	})
}

// What expires keeps its graph in the books.
func TestLapse_WhatExpiresKeepsItsGraph(t *testing.T) {
	s := memory.NewStore(nil)
	e := executorOf(t, s, asking([]string{"a"}, nil), func(c *executor.Config) { c.RequestTimeout = 20 * time.Millisecond })
	waits(t, mustRun(t, e, scriptedStart()))
	e.StartWorkers()
	eventually(t, func() bool {
		doc, err := e.RequestDocument(t.Context(), "acme", "a")
		if err != nil {
			t.Fatal(err)
		}
		return doc.State != desk.StateOpen
	})
	paper, err := s.Document(t.Context(), "acme", store.RequestDocument, "a")
	if err != nil || !strings.Contains(string(paper.Index), `"scripted:it"`) {
		t.Errorf("%s, %v", paper.Index, err)
	}
	kept, _ := s.AuditLines(t.Context(), "acme", 0, 0)
	for _, l := range kept {
		if strings.Contains(string(l.Raw), "request.expired") && !strings.Contains(string(l.Raw), "scripted:it") {
			t.Errorf("%s", l.Raw)
		}
	}
}

// unwritable is a store with questions that are over their deadline, of which nothing can be written.
type unwritable struct {
	store.Store
	looks atomic.Int64
}

func (u *unwritable) Expire(ctx context.Context, _ time.Time, limit int, beside func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	if u.looks.Add(1) > 1000 { // or a loop without a pause would never end here
		<-ctx.Done()
	}
	for n := range limit {
		id := fmt.Sprint("q-", n)
		question := store.Interrupt{Account: "acme", Run: "r"}
		question.ID = id
		beside(question, &store.Document{Account: "acme", Kind: store.RequestDocument, ID: id, Revision: 1, Body: []byte("?")})
	}
	return nil, errors.New("the disk is full")
}

// Questions that were to be put off counted as done, also when nothing could be written: so there was always more to do at once, and the store was asked without a
// pause for as long as it was full.
func TestSweep_RestsIfNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unwritable{Store: memory.NewStore(nil)}
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Poll, c.Log = time.Second, slog.New(slog.DiscardHandler) })
		e.StartWorkers()
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks := s.looks.Load(); looks < 10 || looks > 70 {
			t.Errorf("it looked %d times in a minute, once a second", looks)
		}
	})
}
