package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// secret is in every value of a run of spy.
const secret = "canary-4711"

// spy is a graph whose values all contain the secret: input, state, request, answer, receipt and
// output.
func spy(t *testing.T) provider.Provider {
	return single(t, "spy", inproc.FlowConfig[note]{Content: func(n note) string { return n.Text }}, func(ctx context.Context, n note) (note, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[note]{Name: "send", Args: n})
		if err != nil {
			return n, err
		}
		n.Text, err = fermata.Effect(ctx, yes, func(_ context.Context, n note, _ string) (string, error) { return n.Text + " receipt", nil })
		return n, err
	})
}

func startSpy(t *testing.T, e *executor.Executor, key string) fermata.OpenInterrupt {
	t.Helper()
	return waits(t, began(t, e, key, "inproc:spy", `{"text":"`+secret+`"}`)).Interrupts[0]
}

func approveSpy(key string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: key, ResumeID: key, Actor: "ann", Value: json.RawMessage(`{"verb":"approve","reason":"` + secret + `"}`)}
}

func TestI7_NoPlaintextInTheStoreOrTheLog(t *testing.T) {
	var log syncBuffer
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	startSpy(t, e, "spy-1")
	look := func(when string, state error) {
		t.Helper()
		history := known(t, runs, "spy-1")
		checkpoint, err := runs.Load(t.Context(), store.Key{Account: "acme", Run: history.Run.ID})
		if !errors.Is(err, state) {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v %+v", history, checkpoint) // bytes as numbers
		raw := fmt.Sprint([]byte(secret))
		if strings.Contains(text, secret) || strings.Contains(text, strings.Trim(raw, "[]")) {
			t.Errorf("%s the secret is readable: %s", when, text)
		}
	}
	look("while it waits", nil)
	if done := completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-1")))); done.Content != secret+" receipt" {
		t.Errorf("content %q", done.Content)
	}
	look("after it", store.ErrNotFound) // the outcome contains the complete state
	if strings.Contains(log.String(), secret) {
		t.Errorf("the secret is in the log: %s", log.String())
	}
}

func TestKeys_OtherKeyThanThatOfTheStoreIsRejected(t *testing.T) {
	runs := memory.NewStore(nil)
	executorOf(t, runs, spy(t), nil)
	_, err := executor.New(executor.Config{Store: runs, Sealer: boxOf(t, 2)})
	if !errors.Is(err, executor.ErrWrongKey) || !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("another key: %v", err)
	}
	if _, err := executor.New(executor.Config{Store: runs, Sealer: boxOf(t, 2, 1)}); err != nil {
		t.Errorf("a new key together with the old one: %v", err)
	}
}

func TestKeys_RotationWhileRunsWait(t *testing.T) {
	runs := memory.NewStore(nil)
	startSpy(t, executorOf(t, runs, spy(t), nil), "waits")
	old := executorOf(t, runs, spy(t), nil)
	startSpy(t, old, "over")
	completed(t, mustRun(t, old, addressed(t, old, approveSpy("over"))))

	both := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Sealer = boxOf(t, 2, 1) })
	var told []executor.ReencryptProgress
	sum, err := both.Reencrypt(t.Context(), func(r executor.ReencryptProgress) { told = append(told, r) })
	if err != nil || sum.Changed == 0 || sum.Changed != sum.Seen || len(told) == 0 {
		t.Fatalf("Reencrypt: %+v, %v", sum, err)
	}
	if again, err := both.Reencrypt(t.Context(), nil); err != nil || again.Changed != 0 || again.Seen != sum.Seen {
		t.Errorf("Reencrypt again: %+v, %v", again, err)
	}

	// the old key is gone
	fresh := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Sealer = boxOf(t, 2) })
	completed(t, mustRun(t, fresh, addressed(t, fresh, approveSpy("waits"))))
	if done := completed(t, mustRun(t, fresh, addressed(t, fresh, approveSpy("over")))); done.Content != secret+" receipt" {
		t.Errorf("the outcome from before the rotation is %q", done.Content)
	}
	var out bytes.Buffer
	if n, err := fresh.ExportAccount(t.Context(), "acme", &out); err != nil || n != 2 {
		t.Errorf("%d exported, %v", n, err)
	}
}

// Regression: a value that a process had written too late, after its key was deleted, stopped the
// re-encryption of all values after it.
func TestKeys_UnreadableValueDoesNotStopReencryption(t *testing.T) {
	runs := memory.NewStore(nil)
	startSpy(t, executorOf(t, runs, spy(t), nil), "first")
	startSpy(t, executorOf(t, runs, spy(t), func(c *executor.Config) { c.Sealer = boxOf(t, 3, 1) }), "lost")
	startSpy(t, executorOf(t, runs, spy(t), nil), "last")
	both := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Sealer = boxOf(t, 2, 1) })
	if _, err := both.Reencrypt(t.Context(), nil); !errors.Is(err, seal.ErrUnknownKey) || !strings.Contains(err.Error(), "cannot be decrypted") {
		t.Errorf("Reencrypt: %v", err)
	}
	fresh := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Sealer = boxOf(t, 2) })
	for _, key := range []string{"first", "last"} {
		completed(t, mustRun(t, fresh, addressed(t, fresh, approveSpy(key))))
	}
}

func TestRetention_DeletesOnlyEndedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		e := executorOf(t, runs, spy(t), func(c *executor.Config) {
			c.Poll, c.Retention, c.RequestTimeout = 6*time.Hour, 30*24*time.Hour, -1
		})
		startSpy(t, e, "waits")
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.StartWorkers()
		time.Sleep(29 * 24 * time.Hour)
		known(t, runs, "over")
		time.Sleep(2 * 24 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the ended run: %v", err)
		}
		if _, err := runs.Receipt(t.Context(), "acme", "ann", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("its resume id: %v", err)
		}
		time.Sleep(365 * 24 * time.Hour)
		if _, err := e.Run(t.Context(), addressed(t, e, approveSpy("waits"))); err != nil {
			t.Errorf("the waiting run after a year: %v", err)
		}
	})
}

// All documents of a run are deleted with it: clarifications, rulings, resume ids, notices.
func TestI15_DeletedRunLeavesNoDocuments(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		p := single(t, "refund", inproc.FlowConfig[refund]{Explain: func(context.Context, refund, provider.Clarification) (string, error) { return "it was", nil }},
			func(ctx context.Context, s refund) (refund, error) {
				_, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "pay", Args: s})
				return s, err
			})
		change := func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, "default: ask\ndefaults: {ask: {groups: [{from: [\"group:finance\"], count: 2}], deadline: 1h}}\n")
			c.Desk.Directory = desk.StaticDirectory{"group:finance": {"ann", "bob"}}
			c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })}
		}
		e := executorOf(t, s, p, change)
		e.StartWorkers()
		request := wondering(t, e, "was it damaged?")
		replied(t, e, request, 1)
		// with the digest after the reply of the run
		seen := func(who, resume string) executor.RunRequest {
			doc, err := e.RequestDocument(t.Context(), "acme", request)
			if err != nil {
				t.Fatal(err)
			}
			said := word(who, "refund-1", resume, request, yes)
			said.Targets[request] = executor.Answer{Value: said.Targets[request].Value, Shown: doc.Digest()}
			return said
		}
		if _, err := e.Run(t.Context(), seen("eve", "r0")); err == nil {
			t.Fatal("the vote of eve was accepted")
		}
		waits(t, mustRun(t, e, seen("ann", "r1")))
		completed(t, mustRun(t, e, seen("bob", "r2")))
		kinds := []store.DocumentKind{"run", "vote", "notice", "approvers", "resume", "back", "ruling", store.RequestDocument}
		for _, kind := range kinds {
			if kind != "approvers" && len(papersOf(t, s, "acme", kind)) == 0 {
				t.Errorf("there was no %s to delete", kind)
			}
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		forgets := executorOf(t, s, p, func(c *executor.Config) {
			change(c)
			c.Retention = time.Nanosecond
		})
		forgets.StartWorkers()
		eventually(t, func() bool {
			_, err := s.Get(t.Context(), "acme", "refund-1")
			return err != nil
		})
		for _, kind := range kinds {
			if left := papersOf(t, s, "acme", kind); len(left) != 0 {
				t.Errorf("%d documents of kind %s are left: %+v", len(left), kind, left[0])
			}
		}
	})
}

// Regression: a run whose provider is missing or unreachable was always the first to be deleted,
// and blocked the deletion of all others.
func TestRetention_RunThatCannotBeDeletedDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewStore(nil)
		gone := executorOf(t, runs, &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}, nil)
		for i := range 250 { // more than a page, all at the same time
			start := scriptedStart()
			start.StateKey = fmt.Sprint("x-", i)
			completed(t, mustRun(t, gone, start))
		}
		time.Sleep(time.Second)
		e := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Poll, c.Retention = time.Minute, time.Hour })
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the ended run: %v", err)
		}
		if _, err := runs.Get(t.Context(), "acme", "x-0"); err != nil {
			t.Errorf("the run of the missing provider: %v", err)
		}
	})
}

// The clock of a server jumps a year ahead, and back. Runs that were deleted because of it would be
// lost.
func TestRetention_ClockJumpDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		runs := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		e := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Poll, c.Retention = time.Minute, 12*time.Hour })
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.StartWorkers()
		time.Sleep(10 * time.Minute)
		ahead.Store(int64(365 * 24 * time.Hour))
		time.Sleep(30 * time.Minute)
		ahead.Store(0)
		time.Sleep(30 * time.Minute)
		known(t, runs, "over")
		time.Sleep(12 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after its retention: %v", err)
		}
	})
}

func TestErase_EndsAndDeletesTheRunsOfOneAccount(t *testing.T) {
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 130 { // more than a page
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-0"))))
	other := executor.RunRequest{Account: "other", StateKey: "spy-0", Graph: "inproc:spy", Input: json.RawMessage(`{"text":"x"}`)}
	waits(t, mustRun(t, e, other))
	if n, err := e.EraseAccount(t.Context(), "acme"); err != nil || n != 130 {
		t.Errorf("%d erased, %v", n, err)
	}
	if list, err := runs.List(t.Context(), "acme", store.RunFilter{}); err != nil || len(list) != 0 {
		t.Errorf("remaining runs: %v, %v", list, err)
	}
	waits(t, mustRun(t, e, other))
	if _, err := e.Run(t.Context(), approveSpy("spy-1")); !errors.Is(err, executor.ErrRunNotFound) {
		t.Errorf("a vote on an erased run: %v", err)
	}
}

func TestExport_ContainsEverythingInPlaintextExceptTheRef(t *testing.T) {
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 101 {
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-0"))))
	var out bytes.Buffer
	if n, err := e.ExportAccount(t.Context(), "acme", &out); err != nil || n != 101 {
		t.Fatalf("%d exported, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1] // the oldest
	for _, want := range []string{`"Input":{"text":"canary-4711"}`, `"verb":"approve"`, `canary-4711 receipt`, `"spy-0"`, `"effect_ended"`} {
		if !strings.Contains(last, want) {
			t.Errorf("no %s in %s", want, last)
		}
	}
	if n, err := e.ExportAccount(t.Context(), "other", &out); err != nil || n != 0 {
		t.Errorf("another account exported %d, %v", n, err)
	}
}

// Regression: documents of a run were exported encrypted, and grants and counters of the account
// were missing.
func TestExport_ContainsDocumentsInPlaintext(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		e := bank(t, s, payer(t, &paid, "pay"), strings.NewReplacer("deadline: 1h}", "deadline: 1h, remember_max: 1h}", "max: 1000", "max: 1200").Replace(budgeted))
		asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "p-1", Graph: "inproc:pay", Input: json.RawMessage(`{"cents":600}`), Actor: "req"}))
		id := asked.Interrupts[0].ID
		acts(t, e, id, desk.Comment{From: by("ann"), Text: "what a price"})
		completed(t, mustRun(t, e, word("ann", "p-1", "r", id, yes)))
		if _, err := e.CreateGrant(t.Context(), "acme", id, executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 2}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if n, err := e.ExportAccount(t.Context(), "acme", &out); err != nil || n != 1 {
			t.Fatalf("%d exported, %v", n, err)
		}
		for _, want := range []string{`what a price`, `"requester":"req"`, `"Kind":"grant"`, `"Kind":"counter"`, `"Kind":"vote"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %s in %s", want, out.String())
			}
		}
		if strings.Contains(out.String(), `"salt"`) {
			t.Error("I7: the export contains the salt of the run")
		}
		out.Reset()
		if _, err := e.ExportAccount(t.Context(), "other", &out); err != nil || out.Len() != 0 {
			t.Errorf("I8: another account exported %s, %v", out.String(), err)
		}
	})
}

func TestEvents_AreFollowedToTheEndFromAnotherExecutor(t *testing.T) {
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, spy(t), nil)
	startSpy(t, e, "spy-1")
	other := executorOf(t, runs, spy(t), nil)
	var kinds []store.EventKind
	var following sync.WaitGroup
	following.Go(func() {
		for event, err := range other.FollowEvents(context.Background(), "acme", "spy-1", store.Event{}) {
			if err != nil {
				t.Error(err)
			}
			kinds = append(kinds, event.Kind)
		}
	})
	completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-1"))))
	following.Wait()
	want := []store.EventKind{store.EventCreated, store.EventAsked, store.EventWaiting, store.EventDecided, store.EventEffectBegun, store.EventEffectEnded, store.EventCompleted}
	if fmt.Sprint(kinds) != fmt.Sprint(want) {
		t.Errorf("events %v", kinds)
	}
	for _, err := range e.FollowEvents(t.Context(), "other", "spy-1", store.Event{}) {
		if !errors.Is(err, executor.ErrRunNotFound) {
			t.Errorf("events of another account: %v", err)
		}
	}
}

// A client that follows a run which is erased gets an error, and its call returns.
func TestEvents_EndWhenTheRunIsErased(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, spy(t), nil)
		startSpy(t, e, "spy-1")
		patient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var told error
		for event, err := range e.FollowEvents(patient, "acme", "spy-1", store.Event{}) {
			if told = err; event.Kind == store.EventWaiting {
				if _, err := e.EraseAccount(t.Context(), "acme"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !errors.Is(told, executor.ErrRunNotFound) {
			t.Errorf("errors: %v", told)
		}
	})
}

func TestEvents_EachAnswerIsPulledOnce(t *testing.T) {
	runs := memory.NewStore(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 5 {
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	var seen []string
	cursor := ""
	pull := func() {
		for {
			list, next, err := e.ListSettled(t.Context(), "acme", cursor, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if a.By != "ann" || !strings.Contains(string(a.Answer), `"verb":"approve"`) || a.GraphID != "inproc:spy" {
					t.Errorf("pulled %+v", a)
				}
				seen = append(seen, a.StateKey)
			}
			if next == cursor {
				return
			}
			cursor = next
		}
	}
	for _, i := range []int{3, 1, 4} {
		request := approveSpy(fmt.Sprint("spy-", i))
		completed(t, mustRun(t, e, addressed(t, e, request)))
		pull()
	}
	if fmt.Sprint(seen) != "[spy-3 spy-1 spy-4]" {
		t.Errorf("pulled %v", seen)
	}
}
