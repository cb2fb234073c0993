package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

const (
	account = "acme"
	lease   = time.Hour // no lease expires unless the test takes the run over
)

// driver acts as the executor: it lets one run be executed, reads its interrupts, and decides.
type driver struct {
	t        testing.TB
	subject  Subject
	store    store.Store
	world    *World
	provider provider.Provider

	account, id, key string
	graph            string
	input            json.RawMessage

	lease   store.Lease
	answers []provider.Answer
	attempt int
	ref     string
	resumes int
	faults  *faults       // of the next execution; nil if there are none
	timeout time.Duration // of interrupts
	open    []provider.Interrupt
}

// begin creates a run of a graph and owns it.
func begin(t *testing.T, s Subject, graph string, input json.RawMessage) *driver {
	t.Helper()
	world := newWorld()
	d := &driver{t: t, subject: s, store: s.Store(t), world: world, provider: s.New(t, world), account: account, id: "run_1", key: "demo-1", graph: graph, input: input}
	d.create()
	return d
}

func (d *driver) create() {
	d.t.Helper()
	var err error
	d.lease, err = d.store.Create(d.t.Context(), store.NewRun{
		Account: d.account, ID: d.id, StateKey: d.key, Provider: d.provider.Name(), Graph: d.graph, Input: d.input, Owner: "first", Lease: lease,
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) storeKey() store.Key { return store.Key{Account: d.account, Run: d.id} }

// run returns the run as the provider sees it.
func (d *driver) run(state store.Checkpoints) provider.Run {
	return provider.Run{Account: d.account, ID: d.id, StateKey: d.key, Ref: d.ref, Graph: d.graph, State: state}
}

// execute calls the provider and checks its result.
func (d *driver) execute(ctx context.Context) (provider.Result, error) {
	d.t.Helper()
	owner := &owner{driver: d, lease: d.lease, faults: d.faults}
	state := &faultyState{Checkpoints: d.store.Fenced(d.lease), faults: d.faults}
	result, err := d.provider.Execute(ctx, provider.Execution{Run: d.run(state), Input: d.input, Answers: d.answers, Attempt: d.attempt, Owner: owner})
	d.inspect(result, err)
	return result, err
}

// inspect checks that a result is well-formed.
func (d *driver) inspect(result provider.Result, err error) {
	d.t.Helper()
	d.checkRefHidden(fmt.Sprintf("%#v", result), fmt.Sprint(err))
	if err != nil {
		if result.Outcome != nil || result.Applied != nil {
			d.t.Errorf("an error %v with a result: %#v", err, result)
		}
		return
	}
	given := make(map[string]bool)
	for _, answer := range d.answers {
		given[answer.InterruptID] = true
	}
	for _, id := range result.Applied {
		if !given[id] {
			d.t.Errorf("an answer to %s was applied that was not given", id)
		}
		delete(given, id)
	}
	switch outcome := result.Outcome.(type) {
	case provider.Completed:
		if outcome.Output != nil && !json.Valid(outcome.Output) {
			d.t.Errorf("the output is not JSON: %s", outcome.Output)
		}
	case provider.Failed:
		if outcome.Code == "" || strings.ToLower(outcome.Code) != outcome.Code || strings.ContainsAny(outcome.Code, " :") {
			d.t.Errorf("a failure with the code %q", outcome.Code)
		}
	case provider.Waiting:
		d.inspectQuestions(outcome.Interrupts)
	default:
		d.t.Errorf("neither an error nor a result: %#v", result)
	}
}

func (d *driver) inspectQuestions(questions []provider.Interrupt) {
	d.t.Helper()
	seen := make(map[string]bool)
	for _, q := range questions {
		switch {
		case q.ID == "" || seen[q.ID] || strings.Contains(q.ID, "~"):
			d.t.Errorf("an interrupt with the id %q", q.ID)
		case len(q.Address) == 0:
			d.t.Errorf("interrupt %s has no address", q.ID)
		case !json.Valid(q.Data) || len(q.Data) > limits.MaxDataBytes:
			d.t.Errorf("interrupt %s has data that is not JSON, or %d bytes", q.ID, len(q.Data))
		case q.AnswerSchema != nil && !json.Valid(q.AnswerSchema):
			d.t.Errorf("interrupt %s has a schema that is not JSON", q.ID)
		}
		d.checkRefHidden(string(q.Data), q.ID, q.Address.String(), q.Kind, string(q.AnswerSchema))
		seen[q.ID] = true
	}
	if len(questions) == 0 {
		d.t.Error("it waits for nothing")
	}
}

// checkRefHidden checks that the provider ref is not in the texts (I7).
func (d *driver) checkRefHidden(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if d.ref != "" && strings.Contains(text, d.ref) {
			d.t.Errorf("the ref is in %s", strings.ReplaceAll(text, d.ref, "<ref>"))
		}
	}
}

// mustExecute executes, requires a result, and ends the execution.
func (d *driver) mustExecute() provider.Outcome {
	d.t.Helper()
	result, err := d.execute(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.endExecution(result)
	return result.Outcome
}

// endExecution ends the execution with a result.
func (d *driver) endExecution(result provider.Result) {
	d.t.Helper()
	outcome := store.ExecutionEnd{Applied: result.Applied, Outcome: []byte("{}")}
	d.open = nil
	switch r := result.Outcome.(type) {
	case provider.Completed:
		outcome.Status = store.StatusCompleted
	case provider.Failed:
		outcome.Status = store.StatusFailed
	case provider.Waiting:
		outcome.Status, d.open = store.StatusWaiting, r.Interrupts
		for _, q := range r.Interrupts {
			n := newInterrupt(d.t, q)
			n.Timeout = d.timeout
			outcome.Open = append(outcome.Open, n)
		}
	}
	if _, err := d.store.EndExecution(d.t.Context(), d.lease, outcome); err != nil {
		d.t.Fatalf("ending the execution: %v", err)
	}
	d.attempt = 0
}

func newInterrupt(t testing.TB, q provider.Interrupt) store.NewInterrupt {
	t.Helper()
	n := store.NewInterrupt{ID: q.ID, Address: q.Address.String(), Kind: q.Kind, Data: q.Data, AnswerSchema: q.AnswerSchema}
	if q.Kind == fermata.Approval.Name() {
		var interrupt fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &interrupt); err != nil {
			t.Fatal(err)
		}
		n.ActionDigest = interrupt.Digest
	}
	return n
}

// waits executes a run that must wait for n interrupts.
func (d *driver) waits(n int) []provider.Interrupt {
	d.t.Helper()
	outcome := d.mustExecute()
	waiting, ok := outcome.(provider.Waiting)
	if !ok || len(waiting.Interrupts) != n {
		d.t.Fatalf("it does not wait for %d interrupts: %#v", n, outcome)
	}
	return waiting.Interrupts
}

// completes executes a run that must complete.
func (d *driver) completes() provider.Completed {
	d.t.Helper()
	outcome := d.mustExecute()
	done, ok := outcome.(provider.Completed)
	if !ok {
		d.t.Fatalf("it is not completed: %#v", outcome)
	}
	return done
}

// decide answers interrupts and claims the run.
func (d *driver) decide(answer json.RawMessage, questions ...provider.Interrupt) {
	d.t.Helper()
	d.resumes++
	resume := fmt.Sprint(d.id, " ", d.resumes)
	decision := store.Decision{Account: d.account, Run: d.id, ResumeID: resume, Actor: "ann", BodyDigest: resume}
	for _, q := range questions {
		value, err := d.provider.CheckAnswer(d.t.Context(), d.run(d.store), q.ID, answer)
		if err != nil {
			d.t.Fatalf("a valid answer: %v", err)
		}
		decision.Answers = append(decision.Answers, storeAnswer(d.t, q, value))
	}
	receipt, err := d.store.Decide(d.t.Context(), decision)
	if err != nil || receipt.Result != store.ResultAccepted {
		d.t.Fatalf("deciding: %+v, %v", receipt, err)
	}
	d.claim("first")
}

// storeAnswer converts an answer for the store.
func storeAnswer(t testing.TB, q provider.Interrupt, value json.RawMessage) store.Answer {
	t.Helper()
	answer := store.Answer{Interrupt: q.ID, Verdict: store.VerdictAnswer, Data: value}
	if q.Kind != fermata.Approval.Name() {
		return answer
	}
	var interrupt fermata.ApprovalRequest
	var decision fermata.Decision
	err := errors.Join(json.Unmarshal(q.Data, &interrupt), json.Unmarshal(value, &decision))
	answer.Verdict = store.VerdictReject
	if err == nil {
		if answer.ApprovedDigest, err = interrupt.ApprovedDigest(decision); answer.ApprovedDigest != "" {
			answer.Verdict = store.VerdictApprove
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// claim claims the run, with all decisions.
func (d *driver) claim(owner string) {
	d.t.Helper()
	work, err := d.store.Claim(d.t.Context(), store.Claim{Owner: owner, Lease: lease, Account: d.account, Run: d.id})
	if err != nil || work == nil {
		d.t.Fatalf("claiming: %v, %v", work, err)
	}
	d.lease, d.answers, d.ref, d.attempt = work.Lease, nil, string(work.Run.ProviderRef), work.Run.Attempts
	for _, i := range work.Decided {
		d.answers = append(d.answers, provider.Answer{InterruptID: i.ID, Data: bytes.Clone(i.Answer), Expired: i.Verdict == store.VerdictExpire, By: i.DecidedBy, At: i.DecidedAt})
	}
}

// takeOver claims the run from its owner, in a new process.
func (d *driver) takeOver(t *testing.T) {
	t.Helper()
	if err := d.store.Renew(t.Context(), d.lease, -time.Second); err != nil {
		t.Fatal(err)
	}
	d.provider, d.faults = d.subject.New(t, d.world), nil
	d.claim("second")
}

// loadSaved returns the stored data of the run.
func (d *driver) loadSaved() (store.Checkpoint, store.Run) {
	d.t.Helper()
	checkpoint, err := d.store.Load(d.t.Context(), d.storeKey())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		d.t.Fatal(err)
	}
	run, err := d.store.Get(d.t.Context(), d.account, d.key)
	if err != nil {
		d.t.Fatal(err)
	}
	return checkpoint, run
}
