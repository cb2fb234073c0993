package external_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

func newExecutor(t *testing.T, s store.Store, p provider.Provider, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	sealer, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	config := executor.Config{Store: s, Providers: []provider.Provider{p}, Sealer: sealer, Poll: 5 * time.Millisecond, Wait: time.Minute}
	if change != nil {
		change(&config)
	}
	e, err := executor.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func ask(t *testing.T, e *executor.Executor, key, input string) fermata.NeedsInput {
	t.Helper()
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "external:request", Input: json.RawMessage(input)})
	waiting, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", outcome, err)
	}
	return waiting
}

func answer(key, value string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: key, ResumeID: "1 " + key, Actor: "ann", Value: json.RawMessage(value)}
}

// A receiver that is gone gets nothing more until an operator retries; then it gets the same
// message.
func TestExecutor_ParkedDeliveryIsSentAfterRetry(t *testing.T) {
	var back atomic.Bool
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if !back.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	s := memory.NewStore(nil)
	e := newExecutor(t, s, newProvider(t, nil), nil)
	waiting := ask(t, e, "refund-17", asking(r.URL))
	request := answer("refund-17", `{"action":"approve"}`)
	request.Wait = time.Millisecond
	_, _ = e.Run(t.Context(), request) // it is recorded, and continues
	e.StartWorkers()
	for event, err := range e.FollowEvents(t.Context(), "acme", "refund-17", store.Event{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == store.EventParked {
			break
		}
	}
	back.Store(true)
	if err := e.Retry(t.Context(), "acme", "refund-17", desk.From{Actor: desk.PersonActor("ops", "")}); err != nil {
		t.Fatal(err)
	}
	outcome, err := e.Run(t.Context(), answer("refund-17", `{"action":"approve"}`))
	if _, ok := outcome.(fermata.Completed); err != nil || !ok {
		t.Errorf("%#v, %v", outcome, err)
	}
	taken, tries := r.got()
	if len(taken) != 1 || tries != 2 || taken[0].Data.StateKey != "refund-17" || taken[0].Data.Interrupt != waiting.Interrupts[0].ID {
		t.Errorf("%d tries, %+v", tries, taken)
	}
}

// An agent without a callback polls with the cursor of its last call, and gets each answer once.
func TestExecutor_AnAgentPullsEachAnswerOnce(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), newProvider(t, nil), nil)
	const free = `{"kind":"refund","data":{"order":17}}`
	var cursor string
	for n, key := range []string{"a", "b", "c"} {
		waiting := ask(t, e, key, free)
		if outcome, err := e.Run(t.Context(), answer(key, `{"n":1}`)); err != nil {
			t.Fatalf("%#v, %v", outcome, err)
		}
		list, next, err := e.ListSettled(t.Context(), "acme", cursor, 0)
		if err != nil || len(list) != 1 || next == cursor {
			t.Fatalf("pull %d: %+v, %v", n, list, err)
		}
		if got := list[0]; got.StateKey != key || got.GraphID != "external:request" || got.Interrupt != waiting.Interrupts[0].ID || string(got.Answer) != `{"n":1}` || got.By != "ann" || got.Expired {
			t.Errorf("%+v", got)
		}
		cursor = next
	}
	if list, _, err := e.ListSettled(t.Context(), "globex", "", 0); err != nil || len(list) != 0 {
		t.Errorf("another account gets %+v, %v", list, err)
	}
}

func TestI11_PollingAgentSeesExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.NewStore(nil)
		e := newExecutor(t, s, newProvider(t, nil), func(c *executor.Config) { c.Poll = time.Minute })
		ask(t, e, "refund-17", refund) // it has an hour
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		list, _, err := e.ListSettled(t.Context(), "acme", "", 0)
		if err != nil || len(list) != 1 || !list[0].Expired || list[0].Answer != nil {
			t.Errorf("%+v, %v", list, err)
		}
		outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-17", Graph: "external:request", Input: json.RawMessage(refund)})
		if failed, ok := outcome.(fermata.Failed); err != nil || !ok || failed.Code != "expired" {
			t.Errorf("%#v, %v", outcome, err)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The executor stores approvals by digest, also for agents that run elsewhere.
func TestI6_AnApprovalForAnAgentElsewhereIsAnApproval(t *testing.T) {
	s := memory.NewStore(nil)
	e := newExecutor(t, s, newProvider(t, nil), nil)
	asked := ask(t, e, "drop-1", `{"kind":"approval","data":{"action":"drop","args":{"table":"users"}}}`)
	request := answer("drop-1", "")
	request.Value, request.Targets = nil, map[string]executor.Answer{asked.Interrupts[0].ID: {Value: json.RawMessage(`{"verb":"approve"}`)}}
	outcome, err := e.Run(t.Context(), request)
	done, ok := outcome.(fermata.Completed)
	if err != nil || !ok {
		t.Fatalf("%#v, %v", outcome, err)
	}
	list, err := s.Interrupts(t.Context(), "acme", done.Run)
	if err != nil || len(list) != 1 || list[0].Verdict != store.VerdictApprove || list[0].ApprovedDigest == "" || list[0].ApprovedDigest != list[0].ActionDigest {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestExecutor_ABadRequestFailsAndSaysWhy(t *testing.T) {
	e := newExecutor(t, memory.NewStore(nil), newProvider(t, func(c *external.Config) { c.Allow = nil }), nil)
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", Graph: "external:request", Input: json.RawMessage(asking("https://169.254.169.254/"))})
	if failed, ok := outcome.(fermata.Failed); err != nil || !ok || failed.Code != "invalid_input" || failed.Message != "external: callback.url: the address is not public" {
		t.Errorf("%#v, %v", outcome, err)
	}
}
