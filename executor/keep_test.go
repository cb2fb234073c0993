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
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// secret is in everything that a run of spy works on.
const secret = "canary-4711"

// spy is a graph in which everything is secret: what it begins with, keeps, asks, is told, does and comes to.
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

func approveSpy(key string) executor.Request {
	return executor.Request{Account: "acme", StateKey: key, ResumeID: key, Actor: "ann", Value: json.RawMessage(`{"verb":"approve","reason":"` + secret + `"}`)}
}

func TestI7_NothingSecretIsReadableInTheStoreOrTheLog(t *testing.T) {
	var log bytes.Buffer
	runs := memory.NewRuns(nil)
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
			t.Errorf("%s it can be read: %s", when, text)
		}
	}
	look("while it waits", nil)
	if done := completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-1")))); done.Content != secret+" receipt" {
		t.Errorf("it came to %q", done.Content)
	}
	look("after it", store.ErrNotFound) // all of its state is in the outcome
	if strings.Contains(log.String(), secret) {
		t.Errorf("it is in the log: %s", log.String())
	}
}

func TestKeys_AnotherKeyThanThatOfTheStoreIsRefused(t *testing.T) {
	runs := memory.NewRuns(nil)
	executorOf(t, runs, spy(t), nil)
	_, err := executor.New(executor.Config{Store: runs, Box: boxOf(t, 2)})
	if !errors.Is(err, executor.ErrKey) || !errors.Is(err, box.ErrNoKey) {
		t.Errorf("another key: %v", err)
	}
	if _, err := executor.New(executor.Config{Store: runs, Box: boxOf(t, 2, 1)}); err != nil {
		t.Errorf("a new key beside the old one: %v", err)
	}
}

func TestKeys_AreChangedWhileRunsWait(t *testing.T) {
	runs := memory.NewRuns(nil)
	startSpy(t, executorOf(t, runs, spy(t), nil), "waits")
	old := executorOf(t, runs, spy(t), nil)
	startSpy(t, old, "over")
	completed(t, mustRun(t, old, addressed(t, old, approveSpy("over"))))

	both := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Box = boxOf(t, 2, 1) })
	var told []executor.Resealed
	sum, err := both.Reseal(t.Context(), func(r executor.Resealed) { told = append(told, r) })
	if err != nil || sum.Changed == 0 || sum.Changed != sum.Seen || len(told) == 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if again, err := both.Reseal(t.Context(), nil); err != nil || again.Changed != 0 || again.Seen != sum.Seen {
		t.Errorf("again: %+v, %v", again, err)
	}

	fresh := executorOf(t, runs, spy(t), func(c *executor.Config) { c.Box = boxOf(t, 2) }) // the old key is gone
	completed(t, mustRun(t, fresh, addressed(t, fresh, approveSpy("waits"))))
	if done := completed(t, mustRun(t, fresh, addressed(t, fresh, approveSpy("over")))); done.Content != secret+" receipt" {
		t.Errorf("the outcome of before is %q", done.Content)
	}
	var out bytes.Buffer
	if n, err := fresh.Export(t.Context(), "acme", &out); err != nil || n != 2 {
		t.Errorf("%d exported, %v", n, err)
	}
}

func TestKeep_RetentionForgetsWhatIsOverAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := memory.NewRuns(nil)
		e := executorOf(t, runs, spy(t), func(c *executor.Config) {
			c.Poll, c.Retention, c.Timeout = 6*time.Hour, 30*24*time.Hour, -1
		})
		startSpy(t, e, "waits")
		startSpy(t, e, "over")
		completed(t, mustRun(t, e, addressed(t, e, approveSpy("over"))))
		e.Start()
		time.Sleep(29 * 24 * time.Hour)
		known(t, runs, "over")
		time.Sleep(2 * 24 * time.Hour)
		if _, err := runs.Get(t.Context(), "acme", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what was over: %v", err)
		}
		if _, err := runs.Resumed(t.Context(), "acme", "ann", "over"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("its resume: %v", err)
		}
		time.Sleep(365 * 24 * time.Hour)
		if _, err := e.Run(t.Context(), addressed(t, e, approveSpy("waits"))); err != nil {
			t.Errorf("after a year: %v", err)
		}
	})
}

func TestKeep_EraseEndsAndDeletesTheRunsOfOneAccount(t *testing.T) {
	runs := memory.NewRuns(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 130 { // more than a page
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-0"))))
	other := executor.Request{Account: "other", StateKey: "spy-0", Graph: "inproc:spy", Input: json.RawMessage(`{"text":"x"}`)}
	waits(t, mustRun(t, e, other))
	if n, err := e.Erase(t.Context(), "acme"); err != nil || n != 130 {
		t.Errorf("%d erased, %v", n, err)
	}
	if list, err := runs.List(t.Context(), "acme", store.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("left are %v, %v", list, err)
	}
	waits(t, mustRun(t, e, other))
	if _, err := e.Run(t.Context(), approveSpy("spy-1")); !errors.Is(err, executor.ErrUnknownRun) {
		t.Errorf("a word on what is erased: %v", err)
	}
}

func TestKeep_ExportIsEverythingInTheClearButTheRef(t *testing.T) {
	runs := memory.NewRuns(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 101 {
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	completed(t, mustRun(t, e, addressed(t, e, approveSpy("spy-0"))))
	var out bytes.Buffer
	if n, err := e.Export(t.Context(), "acme", &out); err != nil || n != 101 {
		t.Fatalf("%d exported, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1] // the oldest
	for _, want := range []string{`"Input":{"text":"canary-4711"}`, `"verb":"approve"`, `canary-4711 receipt`, `"spy-0"`, `"effect_ended"`} {
		if !strings.Contains(last, want) {
			t.Errorf("there is no %s in %s", want, last)
		}
	}
	if n, err := e.Export(t.Context(), "other", &out); err != nil || n != 0 {
		t.Errorf("another account has %d, %v", n, err)
	}
}

func TestEvents_AreFollowedToTheEndAlsoFromAnotherExecutor(t *testing.T) {
	runs := memory.NewRuns(nil)
	e := executorOf(t, runs, spy(t), nil)
	startSpy(t, e, "spy-1")
	other := executorOf(t, runs, spy(t), nil)
	var kinds []store.EventKind
	var following sync.WaitGroup
	following.Go(func() {
		for event, err := range other.Follow(context.Background(), "acme", "spy-1", store.Event{}) {
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
		t.Errorf("it saw %v", kinds)
	}
	for _, err := range e.Follow(t.Context(), "other", "spy-1", store.Event{}) {
		if !errors.Is(err, executor.ErrUnknownRun) {
			t.Errorf("somebody else's: %v", err)
		}
	}
}

// Whoever follows a run that is erased hears of it, and does not wait for ever for what will never happen.
func TestEvents_OfARunThatIsErasedEnd(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, spy(t), nil)
		startSpy(t, e, "spy-1")
		patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var told error
		for event, err := range e.Follow(patient, "acme", "spy-1", store.Event{}) {
			if told = err; event.Kind == store.EventWaiting {
				if _, err := e.Erase(t.Context(), "acme"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !errors.Is(told, executor.ErrUnknownRun) {
			t.Errorf("told: %v", told)
		}
	})
}

func TestEvents_AnswersArePulledEachOnce(t *testing.T) {
	runs := memory.NewRuns(nil)
	e := executorOf(t, runs, spy(t), nil)
	for i := range 5 {
		startSpy(t, e, fmt.Sprint("spy-", i))
	}
	var seen []string
	cursor := ""
	pull := func() {
		for {
			list, next, err := e.Answers(t.Context(), "acme", cursor, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if a.By != "ann" || !strings.Contains(string(a.Answer), `"verb":"approve"`) || a.Graph != "inproc:spy" {
					t.Errorf("it pulled %+v", a)
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
		t.Errorf("it pulled %v", seen)
	}
}
