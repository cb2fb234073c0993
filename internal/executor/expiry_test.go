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

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// statusOf returns the status of a run when it no longer changes by itself.
func statusOf(t *testing.T, s store.Store, key string) store.Status {
	t.Helper()
	synctest.Wait()
	run, err := s.Get(t.Context(), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	return run.Status
}

// rewrite replaces the body of a request document.
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

// A request that this process cannot read, because a newer version wrote it, does not expire
// unnoticed: its expiry is postponed until a process can read it.
func TestI12_UnreadableRequestDoesNotExpire(t *testing.T) {
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
			t.Fatalf("%s is %s; %s, which is readable, is %s", id, statusOf(t, s, "drop-1"), other, statusOf(t, s, "drop-2"))
		}
		rewrite(t, s, id, body)
		if _, err := e.Run(t.Context(), word("ann", "drop-1", "late", id, yes)); err == nil {
			t.Error("I10: the request was approved after its deadline")
		}
		time.Sleep(10 * time.Minute)
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateExpired || statusOf(t, s, "drop-1") != store.StatusFailed {
			t.Errorf("the request is readable again, and is %s, %v; the run is %s", doc.State, err, statusOf(t, s, "drop-1"))
		}
		agree(t, e)
	})
}

// An outage that has not ended yet by the local clock does not let a request expire unnoticed.
func TestI12_OngoingOutagePostponesExpiry(t *testing.T) {
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
			t.Fatalf("the request is %s until %s, %v", doc.State, doc.Deadline, err)
		}
		time.Sleep(2 * time.Hour)
		if got := lines(t, s); statusOf(t, s, "drop-1") != store.StatusFailed || !slices.Contains(got, "request.expired") {
			t.Errorf("the run is %s, audit lines %q", statusOf(t, s, "drop-1"), got)
		}
		agree(t, e)
	})
}

// An interrupt without a request, or with a finished one, expires with its own audit line.
func TestI12_InterruptWithoutRequestExpiresWithAuditLine(t *testing.T) {
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
			t.Errorf("interrupt %+v, %v, audit lines %q", i, err, lines(t, s))
		}
	})
}

// An expired request keeps its graph in the index and in the audit log.
func TestExpire_RequestKeepsItsGraph(t *testing.T) {
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
		t.Errorf("index %s, %v", paper.Index, err)
	}
	kept, _ := s.AuditLines(t.Context(), "acme", 0, 0)
	for _, l := range kept {
		if strings.Contains(string(l.Raw), "request.expired") && !strings.Contains(string(l.Raw), "scripted:it") {
			t.Errorf("audit line without the graph: %s", l.Raw)
		}
	}
}

// unwritable is a store with expired interrupts to which nothing can be written.
type unwritable struct {
	store.Store
	looks atomic.Int64
}

func (u *unwritable) Expire(ctx context.Context, _ time.Time, limit int, beside func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	if u.looks.Add(1) > 1000 { // or a loop without a pause would not end
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

// Regression: postponed interrupts counted as done even if nothing could be written. So there was
// always more to do at once, and a full store was queried without a pause.
func TestExpire_PausesIfNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unwritable{Store: memory.NewStore(nil)}
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Poll, c.Log = time.Second, slog.New(slog.DiscardHandler) })
		e.StartWorkers()
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks := s.looks.Load(); looks < 10 || looks > 70 {
			t.Errorf("%d queries in a minute with an interval of one second", looks)
		}
	})
}
