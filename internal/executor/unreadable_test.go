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
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
)

// forgetful is a sealer that has lost the key of some values.
type forgetful struct {
	*seal.Sealer
	lost string // substring of their labels
}

func (f *forgetful) Open(label string, sealed []byte) ([]byte, error) {
	if sealed != nil && f.lost != "" && strings.Contains(label, f.lost) {
		return nil, seal.ErrUnknownKey
	}
	return f.Sealer.Open(label, sealed)
}

// Regression: one unreadable answer stopped the pulling of its whole account, because the cursor
// never got past it.
func TestAnswers_UnreadableAnswerIsMarkedAndSkipped(t *testing.T) {
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
					t.Errorf("pulled %+v", a)
				}
			}
			if next == cursor {
				break
			}
			cursor = next
		}
		if !slices.Equal(seen, []string{"spy-0", "spy-1", "spy-2"}) {
			t.Errorf("pulled %v", seen)
		}
		if n := e.Stats().Unreadable; n != 1 || !strings.Contains(log.String(), lost) {
			t.Errorf("%d unreadable values are reported: %s", n, log.String())
		}

		keys.lost = "" // the key is back
		list, _, err := e.ListSettled(t.Context(), "acme", "", 100)
		if err != nil || len(list) != 3 || list[1].Unreadable || list[1].Answer == nil {
			t.Errorf("with the key: %+v, %v", list, err)
		}
	})
}

// The same in the inbox: an unreadable request is listed as such, with all others.
func TestListRequests_UnreadableRequestIsMarkedAndListed(t *testing.T) {
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
			t.Fatalf("inbox %+v, %v", list, err)
		}
		for _, q := range list {
			if q.Unreadable != (q.ID == lost) || (q.Data == nil) != q.Unreadable {
				t.Errorf("listed %+v", q)
			}
		}
		if n := e.Stats().Unreadable; n != 1 {
			t.Errorf("%d unreadable values are reported", n)
		}
		yes := approveSpy("spy-1")
		yes.Targets, yes.Value = map[string]executor.Answer{lost: {Value: yes.Value}}, nil
		if outcome, err := e.Run(t.Context(), yes); err == nil {
			t.Errorf("I6: an unreadable request was approved: %#v", outcome)
		}
	})
}

// Regression: one unreadable value ended an export, and the values after it were missing. The
// export names the unreadable values.
func TestExport_UnreadableValueDoesNotStopTheExport(t *testing.T) {
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

// unlisted is a store that cannot list documents of a kind.
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

// ErrUnreadable means that everything else was exported. An export that fails earlier does not
// return it, whatever it could not decrypt before.
func TestExport_IncompleteExportIsNotReportedAsComplete(t *testing.T) {
	for _, kind := range []store.DocumentKind{"grant", "counter"} {
		s := memory.NewStore(nil)
		keys := &forgetful{Sealer: testBox(t)}
		change := func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) }
		began(t, office(t, s, new(dropper), change), "drop-1", "inproc:drop", `{"table":"t"}`)
		keys.lost = fmt.Sprintf("%q/%s/", known(t, s, "drop-1").Interrupts[0].ID, store.SealedData)
		e := office(t, unlisted{s, kind}, new(dropper), change)
		if _, err := e.ExportAccount(t.Context(), "acme", io.Discard); !errors.Is(err, errReset) || errors.Is(err, executor.ErrUnreadable) {
			t.Errorf("without %s documents: %v", kind, err)
		}
	}
}

// An account whose key is lost can be erased. Regression: a run with an unreadable request was
// never ended, and stayed.
func TestErase_UnreadableRequestIsErased(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		keys := &forgetful{Sealer: testBox(t)}
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Sealer, c.Log = keys, slog.New(slog.DiscardHandler) })
		startAs(t, e, "req")
		keys.lost = fmt.Sprintf("/%s/", store.SealedDocument)
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Errorf("%d erased, %v", n, err)
		}
		if left, err := s.List(t.Context(), "acme", store.RunFilter{}); err != nil || len(left) != 0 {
			t.Errorf("remaining %+v, %v", left, err)
		}
		log := lines(t, s)
		if want := []string{"request.withdrawn", "run.ended", "audit.erased"}; !slices.Equal(log[len(log)-3:], want) {
			t.Errorf("the audit log ends with %q", log)
		}
		if found, err := e.Reconcile(t.Context(), "acme"); err != nil || len(found) != 0 {
			t.Errorf("reconciliation findings: %+v, %v", found, err)
		}
	})
}

// One unreadable grant does not fail runs.
func TestGrants_UnreadableGrantFailsNoRun(t *testing.T) {
	s := memory.NewStore(nil)
	if err := s.CommitWrites(t.Context(), "acme", store.Writes{Documents: []store.DocumentChange{{Kind: "grant", ID: "grt_x", Body: []byte("?")}}}); err != nil {
		t.Fatal(err)
	}
	e := office(t, s, new(dropper), nil)
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "d", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
	if _, ok := outcome.(fermata.NeedsInput); !ok {
		t.Errorf("outcome %#v, %v", outcome, err)
	}
}

// A hundred unreadable requests do not delay the steps of all others.
func TestRequests_UnreadableRequestsDoNotStarveOthers(t *testing.T) {
	s := memory.NewStore(nil)
	told := make(chan desk.Notice, 10)
	route := map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{
		{At: timespan.Duration(100 * time.Millisecond), Remind: []string{"inbox"}}, {At: timespan.Duration(time.Hour), Expire: "stale"},
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
		c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, _ string, n desk.Notice) error { told <- n; return nil })}
	})
	bad := scriptedStart()
	bad.StateKey = "bad"
	waits(t, mustRun(t, e, bad))
	for n := range 100 { // as if a newer version of the program had written them
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
		t.Error("no reminder of the readable request")
	}
}
