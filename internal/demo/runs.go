package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// demoRun is a run that exists when the demo starts.
type demoRun struct {
	key, graph, input string
	answers           []string // by ann
	typed             string   // to confirm her approval
	cancelled         bool
	parked            bool // it fails by itself
}

// demoStory has one run in each state that a run can have, and a request of each kind.
var demoStory = []demoRun{
	{key: "article-tea", graph: "inproc:content-review", input: `{"topic":"tea"}`},
	{key: "article-coffee", graph: "inproc:content-review", input: `{"topic":"coffee"}`, answers: []string{`{"action":"revise","feedback":"a picture"}`}},
	{key: "article-cocoa", graph: "inproc:content-review", input: `{"topic":"cocoa"}`, answers: []string{`{"action":"approve"}`}},
	{key: "article-mud", graph: "inproc:content-review", input: `{"topic":"mud"}`, answers: []string{`{"action":"reject","feedback":"no reader drinks it"}`}},
	{key: "article-milk", graph: "inproc:content-review", input: `{"topic":"milk"}`, cancelled: true},
	{key: "drop-users", graph: "inproc:drop-table", input: `{"name":"users","rows":48213}`},
	{key: "drop-sessions", graph: "inproc:drop-table", input: `{"name":"sessions","rows":7}`, answers: []string{`{"verb":"approve"}`}, typed: "sessions"},
	{key: "drop-invoices", graph: "inproc:drop-table", input: `{"name":"invoices","rows":9120}`, answers: []string{`{"verb":"reject","reason":"we need them"}`}},
	{key: "restore-orders", graph: "inproc:restore-backup", input: `{"service":"orders"}`},
	{key: "supplier-blum", graph: "inproc:register-supplier", input: `{"name":"Blum Logistics"}`},
	{key: "deploy-checkout", graph: "inproc:deploy", input: `{"service":"checkout","version":"v2.31.0"}`},
	{key: "forget-customer-42", graph: "inproc:dataops", input: `{"request":"forget customer 42"}`},
	// The bank does not answer, so a person has to say whether the payment was made.
	{key: "payout-blum", graph: "inproc:payout", input: `{"supplier":"Blum Logistics","amount":1840,"currency":"EUR"}`, answers: []string{`{"verb":"approve"}`}},
	// Similar refunds, and one that is not.
	{key: "refund-1041", graph: "inproc:refund-order", input: `{"order":1041,"customer":"Ines Roth","amount":24.9,"currency":"EUR"}`},
	{key: "refund-1042", graph: "inproc:refund-order", input: `{"order":1042,"customer":"Paul Meyer","amount":31.5,"currency":"EUR"}`},
	{key: "refund-1044", graph: "inproc:refund-order", input: `{"order":1044,"customer":"Aylin Kaya","amount":18.75,"currency":"EUR"}`},
	{key: "refund-1047", graph: "inproc:refund-order", input: `{"order":1047,"customer":"Jonas Weber","amount":29,"currency":"EUR"}`},
	{key: "refund-1050", graph: "inproc:refund-order", input: `{"order":1050,"customer":"Marie Dubois","amount":4900,"currency":"EUR"}`},
	{key: "refund-1052", graph: "inproc:refund-order", input: `{"order":1052,"customer":"Luca Bianchi","amount":22.4,"currency":"EUR"}`},
	// The machine does not work: fermata store retry demo poster-sale resumes the run.
	{key: "poster-sale", graph: "press:poster", input: `{"text":"Everything must go"}`, parked: true},
	// An external agent created a request that expires.
	{key: "refund-4711", graph: "external:request", input: `{"kind":"refund","data":{"order":4711,"amount":20},"answerSchema":{"type":"boolean"},"timeout":1}`},
}

// CreateRuns starts the runs of the story that do not exist yet. Existing ones are not changed.
func CreateRuns(ctx context.Context, e *executor.Executor) error {
	for _, run := range demoStory {
		_, err := e.GetRun(ctx, Account, run.key)
		if err == nil {
			continue
		}
		if errors.Is(err, executor.ErrRunNotFound) {
			err = run.play(ctx, e)
		}
		if err != nil {
			return fmt.Errorf("sample %s: %w", run.key, err)
		}
	}
	return nil
}

func (run demoRun) play(ctx context.Context, e *executor.Executor) error {
	begin := executor.RunRequest{
		Account: Account, StateKey: run.key, Graph: run.graph, Input: json.RawMessage(run.input), Actor: run.agent(), Kind: desk.ActorAgent,
	}
	if run.parked {
		begin.Wait = -1
	}
	_, err := e.Run(ctx, begin)
	if _, pending := errors.AsType[*executor.PendingError](err); run.parked && pending {
		return run.waitParked(ctx, e)
	}
	if err != nil {
		return err
	}
	for n, answer := range run.answers {
		if err := run.answer(ctx, e, fmt.Sprintf("demo-%s-%d", run.key, n+1), answer); err != nil {
			return err
		}
	}
	if run.cancelled {
		return e.Cancel(ctx, Account, run.key, desk.From{Actor: desk.PersonActor("ann", "")})
	}
	return nil
}

// waitParked waits until a run is parked and its execution has ended.
func (run demoRun) waitParked(ctx context.Context, e *executor.Executor) error {
	for {
		view, err := e.GetRun(ctx, Account, run.key)
		if err != nil || view.Status == store.StatusParked && e.Stats().Running == 0 {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answer answers the open request.
func (run demoRun) answer(ctx context.Context, e *executor.Executor, id, answer string) error {
	view, err := e.GetRun(ctx, Account, run.key)
	if err != nil {
		return err
	}
	targets := make(map[string]executor.Answer)
	for _, q := range view.Interrupts {
		if q.State == store.InterruptPending {
			targets[q.ID] = executor.Answer{Value: json.RawMessage(answer), Shown: q.ShownDigest, Confirm: run.typed}
		}
	}
	_, err = e.Run(ctx, executor.RunRequest{Account: Account, StateKey: run.key, ResumeID: id, Actor: "ann", Via: "demo", Targets: targets})
	return err
}

// agent returns the name of the agent that starts the run.
func (run demoRun) agent() string {
	_, graph, _ := strings.Cut(run.graph, ":")
	return graph + "-bot"
}

// maxDemoRequests is how many requests the sample agents leave open.
const maxDemoRequests = 8

// demoAgents starts a run from time to time, so that new requests appear. It stops with the
// context.
func demoAgents(ctx context.Context, e *executor.Executor, every time.Duration) {
	if every <= 0 {
		return
	}
	var started []string
	for {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		waiting := started[:0]
		for _, key := range started {
			if view, err := e.GetRun(ctx, Account, key); err == nil && view.Status == store.StatusWaiting {
				waiting = append(waiting, key)
			}
		}
		if started = waiting; len(started) >= maxDemoRequests {
			continue
		}
		run := randomDemoRun(time.Now())
		if err := run.play(ctx, e); err == nil {
			started = append(started, run.key)
		}
	}
}

// randomDemoRun returns what a sample agent wants next.
func randomDemoRun(now time.Time) demoRun {
	id := now.Unix() % 1_000_000
	pick := func(list ...string) string { return list[rand.IntN(len(list))] }
	switch rand.IntN(5) {
	case 0:
		return demoRun{key: fmt.Sprintf("article-%d", id), graph: "inproc:content-review", input: fmt.Sprintf(`{"topic":%q}`, pick("maté", "lemonade", "water", "cider"))}
	case 1:
		return demoRun{key: fmt.Sprintf("deploy-%d", id), graph: "inproc:deploy", input: fmt.Sprintf(`{"service":%q,"version":"v2.%d.0"}`, pick("search", "cart", "mail"), 10+rand.IntN(80))}
	}
	return demoRun{key: fmt.Sprintf("refund-%d", id), graph: "inproc:refund-order", input: fmt.Sprintf(`{"order":%d,"customer":%q,"amount":%d.%02d,"currency":"EUR"}`,
		id, pick("Nora Klein", "Emil Sand", "Sofia Rossi", "Tom Berg", "Lea Frei"), 10+rand.IntN(40), rand.IntN(100))}
}
