package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// MaxInput is the size of what a run may begin with, in bytes of JSON.
const MaxInput = 1 << 20

// Request starts a run, or resumes it if it has a resume id.
type Request struct {
	// Account is whose run it is.
	Account string
	// StateKey is the public handle of the run. For a start it may be empty; then a new one is made.
	StateKey string
	// Graph, as "inproc:content-review", and Input are for a start.
	Graph string
	Input json.RawMessage

	// ResumeID is chosen by the caller: the same request with the same id can be repeated at will, and counts once.
	ResumeID string
	// Actor is who decides, Via how their word came here.
	Actor, Via string
	// Value answers the one question that is open; Targets answers questions by id.
	Value   json.RawMessage
	Targets map[string]Answer
}

// Answer is a person's word on one question.
type Answer struct {
	Value json.RawMessage
	// Shown is the digest of what the person saw; "" if they cannot tell.
	Shown string
}

// Run starts or resumes a run, and returns how far it has come. If that takes longer than Config.Wait it returns [ErrPending]; what
// was asked for is recorded then, and goes on. A decision that cannot be taken is a [*RefusedError], an answer that does not fit its question a
// [*fermata.AnswerError].
func (e *Executor) Run(ctx context.Context, request Request) (fermata.Outcome, error) {
	if e.closing() {
		return nil, ErrClosed
	}
	if request.ResumeID == "" {
		return e.start(ctx, request)
	}
	return e.resume(ctx, request)
}

func (e *Executor) start(ctx context.Context, request Request) (fermata.Outcome, error) {
	p, name, err := e.graph(request.Graph)
	if err != nil {
		return nil, err
	}
	if err := checkJSON("the input", request.Input, MaxInput); err != nil {
		return nil, err
	}
	id := ident.Random("run")
	stateKey := request.StateKey
	if stateKey == "" {
		stateKey = ident.Random("key")
	}
	begun := store.NewRun{
		Account: request.Account, ID: id, StateKey: stateKey, Provider: p.Name(), Graph: name,
		Input: e.config.Box.Seal(label(request.Account, id, "input"), request.Input), InputDigest: digest(request.Graph, request.Input),
		Owner: e.config.Owner, Lease: e.config.Lease,
	}
	lease, err := e.config.Runs.Create(ctx, begun)
	if errors.Is(err, store.ErrExists) {
		return e.startAgain(ctx, request.Account, begun)
	}
	if err != nil {
		return nil, err
	}
	run, err := e.config.Runs.Get(ctx, request.Account, stateKey)
	if err != nil {
		return nil, err
	}
	e.launch(&store.Work{Lease: lease, Run: run})
	return e.await(ctx, request.Account, stateKey, nil)
}

// startAgain answers a start that was made before: with how far its run has come.
func (e *Executor) startAgain(ctx context.Context, account string, again store.NewRun) (fermata.Outcome, error) {
	run, err := e.config.Runs.Get(ctx, account, again.StateKey)
	if err != nil {
		return nil, err
	}
	if run.InputDigest != again.InputDigest {
		return nil, fmt.Errorf("%w: %q", ErrInUse, again.StateKey)
	}
	return e.await(ctx, account, again.StateKey, nil)
}

func (e *Executor) resume(ctx context.Context, request Request) (fermata.Outcome, error) {
	run, err := e.find(ctx, request.Account, request.StateKey)
	if err != nil {
		return nil, err
	}
	decision := store.Decision{
		Account: request.Account, Run: run.ID, ResumeID: request.ResumeID, Actor: request.Actor, Via: request.Via, Body: bodyDigest(request),
	}
	receipt, err := e.config.Runs.Resumed(ctx, request.Account, request.Actor, request.ResumeID)
	if errors.Is(err, store.ErrNotFound) {
		if decision.Answers, err = e.answers(ctx, run, request); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	// A resume id that is known is asked for all the same: whether this is the same decision is the store's to say.
	if receipt, err = e.config.Runs.Decide(ctx, decision); errors.Is(err, store.ErrReused) {
		return nil, ErrReused
	} else if err != nil {
		return nil, err
	}
	if receipt.Result != store.Accepted {
		return nil, e.refused(ctx, run, receipt)
	}
	e.claim(ctx, run)
	return e.await(ctx, request.Account, request.StateKey, &request)
}

func (e *Executor) find(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := e.config.Runs.Get(ctx, account, stateKey)
	if errors.Is(err, store.ErrNotFound) {
		return run, fmt.Errorf("%w: %q", ErrUnknownRun, stateKey)
	}
	return run, err
}

// answers checks what was said against what was asked. Nothing is changed by it.
func (e *Executor) answers(ctx context.Context, run store.Run, request Request) ([]store.Answer, error) {
	asked, err := e.config.Runs.Interrupts(ctx, run.Account, run.ID)
	if err != nil {
		return nil, err
	}
	targets := request.Targets
	if request.Value != nil {
		if targets, err = onlyOpen(asked, targets, request.Value); err != nil {
			return nil, err
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: a resume needs an answer", ErrInvalid)
	}
	var answers []store.Answer
	for id, said := range targets {
		answer := store.Answer{Interrupt: id, Verdict: store.Answered, Shown: said.Shown}
		i := slices.IndexFunc(asked, func(i store.Interrupt) bool { return i.ID == id })
		if i >= 0 && asked[i].State == store.Pending { // or the store says what is the matter with it
			if answer, err = e.answer(ctx, run, asked[i], said); err != nil {
				return nil, err
			}
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// onlyOpen makes a value the answer to the one open question.
func onlyOpen(asked []store.Interrupt, targets map[string]Answer, value json.RawMessage) (map[string]Answer, error) {
	if len(targets) > 0 {
		return nil, fmt.Errorf("%w: it has a value and targets: which one counts?", ErrInvalid)
	}
	var open []string
	for _, i := range asked {
		if i.State == store.Pending {
			open = append(open, i.ID)
		}
	}
	switch len(open) {
	case 0:
		return nil, &RefusedError{Result: store.Gone}
	case 1:
		return map[string]Answer{open[0]: {Value: value}}, nil
	}
	return nil, fmt.Errorf("%w: %d questions are open: say which one is answered", ErrInvalid, len(open))
}

// answer checks one answer, and finds out what it says.
func (e *Executor) answer(ctx context.Context, run store.Run, i store.Interrupt, said Answer) (store.Answer, error) {
	answer := store.Answer{Interrupt: i.ID, Verdict: store.Answered, Shown: said.Shown}
	if err := checkJSON("the answer", said.Value, fermata.MaxAnswer); err != nil {
		return answer, err
	}
	named, err := e.runOf(run)
	if err != nil {
		return answer, err
	}
	p := e.providers[run.Provider]
	if p == nil {
		return answer, fmt.Errorf("%w: this process has no provider %q", ErrUnknownGraph, run.Provider)
	}
	value, err := p.Check(ctx, named, i.ID, said.Value)
	if err != nil {
		return answer, err
	}
	answer.Data = e.config.Box.Seal(label(run.Account, i.ID, "answer"), value)
	if i.Kind != fermata.Approval.Name() {
		return answer, nil
	}
	question, err := e.config.Box.Open(label(run.Account, i.ID, "data"), i.Data)
	if err != nil {
		return answer, err
	}
	return approval(answer, question, value)
}

// approval says what a decision on an action approves.
func approval(answer store.Answer, question, value json.RawMessage) (store.Answer, error) {
	var asked fermata.ApprovalRequest
	var decision fermata.Decision
	if err := errors.Join(json.Unmarshal(question, &asked), json.Unmarshal(value, &decision)); err != nil {
		return answer, err
	}
	var err error
	answer.Verdict = store.Reject
	if answer.Final, err = asked.Approves(decision); answer.Final != "" {
		answer.Verdict = store.Approve
	}
	return answer, err
}

// show is what becomes visible of a question.
func (e *Executor) show(run store.Run, q provider.Question) (store.NewInterrupt, error) {
	if len(q.Data) > fermata.MaxData {
		return store.NewInterrupt{}, fmt.Errorf("executor: what %s shows has %d bytes; %d are allowed", q.Address, len(q.Data), fermata.MaxData)
	}
	shown := store.NewInterrupt{
		ID: q.ID, Address: q.Address.String(), Kind: q.Kind, Schema: q.AnswerSchema, Shown: digest(q.Kind, q.Data),
		Data:    e.config.Box.Seal(label(run.Account, q.ID, "data"), q.Data),
		Timeout: max(e.config.Timeout, 0),
	}
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return shown, err
		}
		shown.Action = asked.Digest
	}
	return shown, nil
}

// refused says why a decision was not taken, and by whom something was decided before.
func (e *Executor) refused(ctx context.Context, run store.Run, receipt store.Receipt) error {
	refused := &RefusedError{Result: receipt.Result, Interrupt: receipt.Interrupt}
	if receipt.Result != store.AlreadyDecided {
		return refused
	}
	asked, err := e.config.Runs.Interrupts(ctx, run.Account, run.ID)
	for _, i := range asked {
		if i.ID == receipt.Interrupt {
			refused.By, refused.At, refused.Verdict = i.By, i.At, i.Verdict
		}
	}
	return errors.Join(refused, err)
}

// launch executes work in the background: it outlives whoever asked for it.
func (e *Executor) launch(work *store.Work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return // somebody else takes over when the lease is over
	}
	e.work.Go(func() { e.execute(work) })
}

// claim takes the run that was just decided on, if nobody else has.
func (e *Executor) claim(ctx context.Context, run store.Run) {
	work, err := e.config.Runs.Claim(ctx, store.Claim{Owner: e.config.Owner, Lease: e.config.Lease, Account: run.Account, Run: run.ID})
	if err == nil && work != nil {
		e.launch(work)
	}
}

// await waits for a run to come to rest, here or elsewhere: for the end of the execution that applied a resume, or of any.
func (e *Executor) await(ctx context.Context, account, stateKey string, resume *Request) (fermata.Outcome, error) {
	deadline := time.NewTimer(e.config.Wait)
	defer deadline.Stop()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.config.Poll) {
		run, err := e.find(ctx, account, stateKey)
		if err != nil {
			return nil, err
		}
		of, sealed, err := e.outcome(ctx, run, resume)
		if err != nil {
			return nil, err
		}
		if sealed != nil {
			return e.open(account, of, sealed)
		}
		timer := time.NewTimer(pause)
		select {
		case <-e.rests(run):
		case <-timer.C:
		case <-deadline.C:
			return nil, fmt.Errorf("%w: %q", ErrPending, stateKey)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// outcome is what a run came to, sealed, and the id of that run; nil as long as it is under way.
func (e *Executor) outcome(ctx context.Context, run store.Run, resume *Request) (of string, sealed []byte, err error) {
	if resume != nil {
		receipt, err := e.config.Runs.Resumed(ctx, resume.Account, resume.Actor, resume.ResumeID)
		return receipt.Run, receipt.Outcome, err
	}
	switch run.Status {
	case store.Running, store.Ready:
		return run.ID, nil, nil
	}
	return run.ID, run.Outcome, nil
}

func (e *Executor) open(account, run string, sealed []byte) (fermata.Outcome, error) {
	data, err := e.config.Box.Open(label(account, run, "outcome"), sealed)
	if err != nil {
		return nil, err
	}
	return fermata.UnmarshalOutcome(data)
}

// rests is closed when the run comes to rest in this process; it never is if it is not at work here.
func (e *Executor) rests(run store.Run) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.resting[store.Key{Account: run.Account, Run: run.ID}]
}

// checkJSON refuses what is no JSON, or too much of it.
func checkJSON(what string, data json.RawMessage, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: %s has %d bytes; %d are allowed", ErrInvalid, what, len(data), limit)
	}
	if err := strictjson.Check(data); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
	}
	return nil
}

func digest(name string, data []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", name)
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// bodyDigest is the same for all repetitions of a request, and for nothing else.
func bodyDigest(r Request) string {
	body, err := json.Marshal(struct {
		StateKey string
		Value    json.RawMessage
		Targets  map[string]Answer
	}{r.StateKey, r.Value, r.Targets})
	if err != nil { // no JSON: its bytes will do, and it will be refused
		body = append([]byte(r.StateKey), r.Value...)
	}
	return digest("resume", body)
}
