package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// forgetful is a box that has lost the key of some values.
type forgetful struct {
	*seal.Sealer
	lost string // what their labels have in common
}

func (f *forgetful) Open(label string, sealed []byte) ([]byte, error) {
	if sealed != nil && f.lost != "" && strings.Contains(label, f.lost) {
		return nil, seal.ErrUnknownKey
	}
	return f.Sealer.Open(label, sealed)
}

// One answer that nobody can open any more stopped the pulling of its whole account, for ever: the cursor never got past it.
func TestAnswers_OneThatCannotBeOpenedIsMarkedAndPassed(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var log syncBuffer
		keys := &forgetful{Sealer: testBox(t)}
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.NewTextHandler(&log, nil)) })
		for n := range 3 {
			startSpy(t, e, fmt.Sprint("spy-", n))
			completed(t, mustRun(t, e, addressed(t, e, approveSpy(fmt.Sprint("spy-", n)))))
		}
		lost := known(t, s, "spy-1").Interrupts[0].ID
		keys.lost = fmt.Sprintf("%q/%s/", lost, store.SealedAnswer)

		var seen []string
		for cursor := ""; ; {
			list, next, err := e.ListSettled(t.Context(), "acme", cursor, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				seen = append(seen, a.StateKey)
				if a.Unreadable != (a.Interrupt == lost) || (a.Answer == nil) != a.Unreadable || a.By != "ann" || a.At.IsZero() || a.Expired {
					t.Errorf("it pulled %+v", a)
				}
			}
			if next == cursor {
				break
			}
			cursor = next
		}
		if !slices.Equal(seen, []string{"spy-0", "spy-1", "spy-2"}) {
			t.Errorf("it pulled %v", seen)
		}
		if n := e.Stats().Unreadable; n != 1 || !strings.Contains(log.String(), lost) {
			t.Errorf("operators hear of %d: %s", n, log.String())
		}

		keys.lost = "" // somebody found the key
		list, _, err := e.ListSettled(t.Context(), "acme", "", 100)
		if err != nil || len(list) != 3 || list[1].Unreadable || list[1].Answer == nil {
			t.Errorf("with the key: %+v, %v", list, err)
		}
	})
}

// The same in the list of what people are asked: they see that it is there, and all the others.
func TestQuestions_OneThatCannotBeOpenedIsMarkedAndPassed(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		keys := &forgetful{Sealer: testBox(t)}
		e := executorOf(t, s, spy(t), func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) })
		for n := range 3 {
			startSpy(t, e, fmt.Sprint("spy-", n))
		}
		lost := known(t, s, "spy-1").Interrupts[0].ID
		keys.lost = fmt.Sprintf("%q/%s/", lost, store.SealedData)
		list, err := e.ListRequests(t.Context(), "acme", store.InboxFilter{})
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, q := range list {
			if q.Unreadable != (q.ID == lost) || (q.Data == nil) != q.Unreadable {
				t.Errorf("it lists %+v", q)
			}
		}
		if n := e.Stats().Unreadable; n != 1 {
			t.Errorf("operators hear of %d", n)
		}
		yes := approveSpy("spy-1")
		yes.Targets, yes.Value = map[string]executor.Answer{lost: {Value: yes.Value}}, nil
		if outcome, err := e.Run(t.Context(), yes); err == nil {
			t.Errorf("I6: what nobody can see was approved: %#v", outcome)
		}
	})
}

// One value that nobody can open any more ended an export: nothing that came behind it was in the file. It is said what is missing.
func TestExport_WhatCannotBeOpenedHoldsUpNothingElse(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		keys := &forgetful{Sealer: testBox(t)}
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) })
		for n := range 3 {
			began(t, e, fmt.Sprint("drop-", n), "inproc:drop", fmt.Sprintf(`{"table":"t%d"}`, n))
		}
		for _, what := range []store.SealedField{store.SealedData, store.SealedDocument, store.SealedPart} {
			lost := known(t, s, "drop-1")
			id := lost.Interrupts[0].ID
			if what == store.SealedPart {
				id = lost.Run.ID
			}
			keys.lost = fmt.Sprintf("%q/%s/", id, what)
			var out bytes.Buffer
			if n, err := e.ExportAccount(t.Context(), "acme", &out); n != 3 || !errors.Is(err, executor.ErrUnreadable) {
				t.Errorf("%s: %d exported, %v", what, n, err)
			}
			for n, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
				if missing := strings.Contains(line, `"Unreadable":["`); missing != strings.Contains(line, lost.Run.ID) || !strings.Contains(line, `"Input":{"table":"t`) {
					t.Errorf("%s: line %d: %s", what, n+1, line)
				}
			}
		}
	})
}

// unlisted is a store that cannot list papers of a kind.
type unlisted struct {
	store.Store
	kind store.DocumentKind
}

func (u unlisted) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	if kind == u.kind {
		return nil, errReset
	}
	return u.Store.Documents(ctx, account, kind, filter)
}

// ErrUnreadable says that everything else was written. An export that ends before that does not say so, whatever it could not open on its way.
func TestExport_OneThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	for _, kind := range []store.DocumentKind{"grant", "counter"} {
		s := memory.NewStore(nil)
		keys := &forgetful{Sealer: testBox(t)}
		change := func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) }
		began(t, office(t, s, new(dropper), change), "drop-1", "inproc:drop", `{"table":"t"}`)
		keys.lost = fmt.Sprintf("%q/%s/", known(t, s, "drop-1").Interrupts[0].ID, store.SealedData)
		e := office(t, unlisted{s, kind}, new(dropper), change)
		if _, err := e.ExportAccount(t.Context(), "acme", io.Discard); !errors.Is(err, errReset) || errors.Is(err, executor.ErrUnreadable) {
			t.Errorf("without each %s: %v", kind, err)
		}
	}
}

// An account whose key is lost is erased all the same: a run with a request that nobody could open was never ended, and stayed.
func TestErase_WhatCannotBeOpenedGoesAsWell(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		keys := &forgetful{Sealer: testBox(t)}
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) })
		startAs(t, e, "req")
		keys.lost = fmt.Sprintf("/%s/", store.SealedDocument)
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Errorf("%d erased, %v", n, err)
		}
		if left, err := s.List(t.Context(), "acme", store.RunFilter{}); err != nil || len(left) != 0 {
			t.Errorf("left are %+v, %v", left, err)
		}
		log := lines(t, s)
		if want := []string{"request.withdrawn", "run.ended", "audit.erased"}; !slices.Equal(log[len(log)-3:], want) {
			t.Errorf("the log ends with %q", log)
		}
		if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
			t.Errorf("the books: %+v, %v", found, err)
		}
	})
}

// One grant that cannot be read does not stop all that is asked.
func TestGrants_OneThatCannotBeReadFailsNoRun(t *testing.T) {
	s := memory.NewStore(nil)
	if err := s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "grant", ID: "grt_x", Body: []byte("?")}}}); err != nil {
		t.Fatal(err)
	}
	e := office(t, s, new(dropper), nil)
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "d", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
	if _, ok := outcome.(fermata.NeedsInput); !ok {
		t.Errorf("%#v, %v", outcome, err)
	}
}

// A hundred requests that cannot be read do not keep the clock from all others.
func TestRequests_ThoseThatCannotBeReadDoNotStarveOthers(t *testing.T) {
	s := memory.NewStore(nil)
	told := make(chan desk.Notice, 10)
	route := map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{
		{At: desk.Duration(100 * time.Millisecond), Remind: []string{"inbox"}}, {At: desk.Duration(time.Hour), Expire: "stale"},
	}}}
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		var questions []provider.Interrupt
		for n := range 100 {
			questions = append(questions, provider.Interrupt{ID: fmt.Sprint(e.Run.StateKey, "-", n), Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`1`)}})
		}
		if e.Run.StateKey == "good" {
			questions = questions[:1]
		}
		return provider.Result{Outcome: provider.Waiting{Interrupts: questions}}, nil
	}}
	e := executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Routes = route
		c.Desk.Notify = func(_ context.Context, _ string, n desk.Notice) error { told <- n; return nil }
	})
	bad := scriptedStart()
	bad.StateKey = "bad"
	waits(t, mustRun(t, e, bad))
	for n := range 100 { // a newer version of the program has written them, say
		id := fmt.Sprint("bad-", n)
		paper, err := s.Document(t.Context(), "acme", store.RequestDocument, id)
		if err == nil {
			err = s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: store.RequestDocument, ID: id, BaseRevision: paper.Revision, Body: []byte("?"), Index: paper.Index, DueAt: paper.DueAt}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	good := scriptedStart()
	good.StateKey = "good"
	waits(t, mustRun(t, e, good))
	e.StartWorkers()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("nobody is reminded of the one that can be read")
	}
}
