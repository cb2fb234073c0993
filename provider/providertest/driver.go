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
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

const (
	account = "acme"
	lease   = time.Hour // nobody loses a run here unless the test takes it away
)

// driver stands where an executor would: it has one run executed, shows what it asks, and decides.
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
	faults  *faults       // of the execution to come; nil if there are none
	timeout time.Duration // of what is asked
	open    []provider.Interrupt
}

// begin creates a run of a graph, and owns it.
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

// run names the run as the provider gets to see it.
func (d *driver) run(state store.Checkpoints) provider.Run {
	return provider.Run{Account: d.account, ID: d.id, StateKey: d.key, Ref: d.ref, Graph: d.graph, State: state}
}

// execute has the provider work, and looks at what it says.
func (d *driver) execute(ctx context.Context) (provider.Result, error) {
	d.t.Helper()
	owner := &owner{driver: d, lease: d.lease, faults: d.faults}
	state := &faultyState{Checkpoints: d.store.Fenced(d.lease), faults: d.faults}
	result, err := d.provider.Execute(ctx, provider.Execution{Run: d.run(state), Input: d.input, Answers: d.answers, Attempt: d.attempt, Owner: owner})
	d.inspect(result, err)
	return result, err
}

// inspect says what is wrong with a result in itself.
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
			d.t.Errorf("an answer to %s was taken that nobody gave", id)
		}
		delete(given, id)
	}
	switch rest := result.Outcome.(type) {
	case provider.Completed:
		if rest.Output != nil && !json.Valid(rest.Output) {
			d.t.Errorf("the output is no JSON: %s", rest.Output)
		}
	case provider.Failed:
		if rest.Code == "" || strings.ToLower(rest.Code) != rest.Code || strings.ContainsAny(rest.Code, " :") {
			d.t.Errorf("a failure whose code is %q", rest.Code)
		}
	case provider.Waiting:
		d.inspectQuestions(rest.Interrupts)
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
			d.t.Errorf("a question with the id %q", q.ID)
		case len(q.Address) == 0:
			d.t.Errorf("question %s has no place", q.ID)
		case !json.Valid(q.Data) || len(q.Data) > fermata.MaxDataBytes:
			d.t.Errorf("question %s shows what is no JSON, or %d bytes", q.ID, len(q.Data))
		case q.AnswerSchema != nil && !json.Valid(q.AnswerSchema):
			d.t.Errorf("question %s has a schema that is no JSON", q.ID)
		}
		d.checkRefHidden(string(q.Data), q.ID, q.Address.String(), q.Kind, string(q.AnswerSchema))
		seen[q.ID] = true
	}
	if len(questions) == 0 {
		d.t.Error("it waits for nothing")
	}
}

// keepsRef looks for the provider's name of the run where it must not be (I7).
func (d *driver) checkRefHidden(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if d.ref != "" && strings.Contains(text, d.ref) {
			d.t.Errorf("the ref is in %s", strings.ReplaceAll(text, d.ref, "<ref>"))
		}
	}
}

// mustExecute executes, which has to come to a result, and gives the run back.
func (d *driver) mustExecute() provider.Outcome {
	d.t.Helper()
	result, err := d.execute(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.endExecution(result)
	return result.Outcome
}

// rest gives the run back with what it came to.
func (d *driver) endExecution(result provider.Result) {
	d.t.Helper()
	rest := store.ExecutionEnd{Applied: result.Applied, Outcome: []byte("{}")}
	d.open = nil
	switch r := result.Outcome.(type) {
	case provider.Completed:
		rest.Status = store.StatusCompleted
	case provider.Failed:
		rest.Status = store.StatusFailed
	case provider.Waiting:
		rest.Status, d.open = store.StatusWaiting, r.Interrupts
		for _, q := range r.Interrupts {
			n := newInterrupt(d.t, q)
			n.Timeout = d.timeout
			rest.Open = append(rest.Open, n)
		}
	}
	if _, err := d.store.EndExecution(d.t.Context(), d.lease, rest); err != nil {
		d.t.Fatalf("giving the run back: %v", err)
	}
	d.attempt = 0
}

func newInterrupt(t testing.TB, q provider.Interrupt) store.NewInterrupt {
	t.Helper()
	n := store.NewInterrupt{ID: q.ID, Address: q.Address.String(), Kind: q.Kind, Data: q.Data, AnswerSchema: q.AnswerSchema}
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			t.Fatal(err)
		}
		n.ActionDigest = asked.Digest
	}
	return n
}

// waits executes a run that has to wait for so many questions.
func (d *driver) waits(n int) []provider.Interrupt {
	d.t.Helper()
	rest := d.mustExecute()
	waiting, ok := rest.(provider.Waiting)
	if !ok || len(waiting.Interrupts) != n {
		d.t.Fatalf("it does not wait for %d questions: %#v", n, rest)
	}
	return waiting.Interrupts
}

// completes executes a run that has to be over then.
func (d *driver) completes() provider.Completed {
	d.t.Helper()
	rest := d.mustExecute()
	done, ok := rest.(provider.Completed)
	if !ok {
		d.t.Fatalf("it is not completed: %#v", rest)
	}
	return done
}

// decide answers questions, and claims the run.
func (d *driver) decide(answer json.RawMessage, questions ...provider.Interrupt) {
	d.t.Helper()
	d.resumes++
	resume := fmt.Sprint(d.id, " ", d.resumes)
	decision := store.Decision{Account: d.account, Run: d.id, ResumeID: resume, Actor: "ann", BodyDigest: resume}
	for _, q := range questions {
		value, err := d.provider.CheckAnswer(d.t.Context(), d.run(d.store), q.ID, answer)
		if err != nil {
			d.t.Fatalf("an answer that fits: %v", err)
		}
		decision.Answers = append(decision.Answers, storeAnswer(d.t, q, value))
	}
	receipt, err := d.store.Decide(d.t.Context(), decision)
	if err != nil || receipt.Result != store.ResultAccepted {
		d.t.Fatalf("deciding: %+v, %v", receipt, err)
	}
	d.claim("first")
}

// storeAnswer is what an answer says.
func storeAnswer(t testing.TB, q provider.Interrupt, value json.RawMessage) store.Answer {
	t.Helper()
	answer := store.Answer{Interrupt: q.ID, Verdict: store.VerdictAnswer, Data: value}
	if q.Kind != fermata.Approval.Name() {
		return answer
	}
	var asked fermata.ApprovalRequest
	var said fermata.Decision
	err := errors.Join(json.Unmarshal(q.Data, &asked), json.Unmarshal(value, &said))
	answer.Verdict = store.VerdictReject
	if err == nil {
		if answer.ApprovedDigest, err = asked.ApprovedDigest(said); answer.ApprovedDigest != "" {
			answer.Verdict = store.VerdictApprove
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// claim takes the run, with everything that was decided.
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

// takeOver takes the run from whoever has it, in a new process.
func (d *driver) takeOver(t *testing.T) {
	t.Helper()
	if err := d.store.Renew(t.Context(), d.lease, -time.Second); err != nil {
		t.Fatal(err)
	}
	d.provider, d.faults = d.subject.New(t, d.world), nil
	d.claim("second")
}

// saved is what is kept of the run.
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
