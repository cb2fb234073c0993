package executor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/store"
)

// Sizes at the border, in bytes.
const (
	MaxInput = 1 << 20 // of the JSON that a run may begin with
	MaxName  = 512     // of a state key, a resume id, an actor
)

// RunRequest starts a run, or resumes it if it has a resume id.
type RunRequest struct {
	// Account is whose run it is.
	Account string
	// StateKey is the public handle of the run. For a start it may be empty; then a new one is made.
	StateKey string

	// Graph, as "inproc:content-review", and Input are for a start. The same start can be repeated at will, and counts once.
	Graph string
	Input json.RawMessage
	// StartID, if given, tells a start from another one of the same graph with the same input.
	StartID string
	// Supersede ends the run that has the state key, if it began with something else.
	Supersede bool
	// Once keeps the state key for this start alone: another one is refused even after the run is over.
	ReserveStateKey bool

	// ResumeID is chosen by the caller: the same request with the same id can be repeated at will, and counts once. An actor has one of a name in all of the
	// account, and not one for each run: make it a new one for each decision.
	ResumeID string
	// Actor is who decides, or on whose behalf a run is started. Via is the channel on which that came, Auth how strongly the actor was authenticated.
	Actor, Via string
	Auth       desk.Auth
	// Kind is what an actor is who starts a run; a person by default. Only people decide.
	Kind desk.ActorKind
	// Value answers the one question that is open; Targets answers questions by id. A decision on an action needs an id: otherwise somebody who looked
	// at one action could approve the next one, if the first was decided meanwhile.
	Value   json.RawMessage
	Targets map[string]Answer

	// Wait is how long to wait for the outcome; 0 is Config.Wait, and a negative one does not wait.
	Wait time.Duration
}

// from is who starts a run, or has one ended for it.
func (r RunRequest) origin() desk.From {
	return desk.From{Actor: desk.Actor{ID: r.Actor, Kind: cmp.Or(r.Kind, desk.ActorHuman), Auth: r.Auth}, Via: r.Via}
}

// Answer is what a person answers to one question.
type Answer struct {
	Value json.RawMessage
	// Shown is the digest of what the person saw; "" if they cannot tell.
	Shown string
}

// Run starts or resumes a run, and returns how far it has come. If that takes too long it returns a [*PendingError]; what was asked for is
// recorded then, and goes on. A decision that cannot be taken is a [*RefusedError], an answer that does not fit its question a
// [*fermata.AnswerError]. After an error of any other package it is unknown whether the request took effect: repeat it, it counts once.
func (e *Executor) Run(ctx context.Context, request RunRequest) (fermata.Outcome, error) {
	if e.isStopping() {
		return nil, ErrClosed
	}
	if err := validateNames(request); err != nil {
		return nil, err
	}
	begin := e.resume
	if request.ResumeID == "" {
		begin = e.start
	}
	outcome, err := begin(ctx, request)
	return outcome, e.noteWriteError(err)
}

func (e *Executor) start(ctx context.Context, request RunRequest) (fermata.Outcome, error) {
	ctx, span := e.tracer().Start(ctx, "fermata.start")
	defer span.End()
	p, g, err := e.graph(request.Graph)
	if err != nil {
		return nil, err
	}
	if err := validateJSON("the input", request.Input, MaxInput); err != nil {
		return nil, err
	}
	begin := store.NewRun{
		Account: request.Account, ID: ident.Random("run"), StateKey: request.StateKey, Provider: p.Name(), Graph: g.Name,
		InputDigest: startDigest(request), Owner: e.config.Owner, Lease: e.config.Lease,
	}
	begin.Input = e.encrypt(begin.Account, store.SealedInput, begin.ID, request.Input)
	if begin.StateKey == "" {
		begin.StateKey = ident.Random("key")
	}
	for try := 0; ; try++ {
		dropped := e.metaCache.dropCount()
		lease, known, err := e.tryCreate(ctx, request, &begin)
		if err == nil {
			e.metaCache.put(store.Key{Account: begin.Account, Run: begin.ID}, *known, dropped)
			flight := e.launch(ctx, &store.ClaimedRun{Lease: lease, Run: createdRun(begin, lease)}, preloaded{meta: known})
			return e.awaitOutcome(ctx, request, awaitTarget{run: begin.ID, stateKey: begin.StateKey, execution: flight})
		}
		if errors.Is(err, store.ErrExists) && try == maxStaleTries {
			err = fmt.Errorf("%w: %q", ErrStateKeyInUse, begin.StateKey)
		}
		if !errors.Is(err, store.ErrExists) {
			return nil, err
		}
		// Most state keys are new, so they are looked up only now: is the run that has it the same start, or another one?
		same, err := e.checkStateKey(ctx, request, &begin)
		if err != nil {
			return nil, err
		}
		if same != "" { // a repetition: its caller gets the outcome of the first start
			return e.awaitOutcome(ctx, request, awaitTarget{run: same, stateKey: begin.StateKey})
		}
	}
}

// create tries to begin a run. It returns store.ErrExists if the state key is not free, or was not when begin.After was read: see prepare.
func (e *Executor) tryCreate(ctx context.Context, request RunRequest, begin *store.NewRun) (store.Lease, *runMeta, error) {
	paper, known, err := e.startWrites(ctx, request, *begin)
	if err != nil {
		return store.Lease{}, nil, err
	}
	begin.Writes = paper.Writes
	lease, err := e.store.Create(ctx, *begin)
	return lease, known, err
}

// beginState is what is written in the transaction that creates a run.
func (e *Executor) startWrites(ctx context.Context, request RunRequest, begin store.NewRun) (*unitOfWork, *runMeta, error) {
	known, paper, err := e.newMeta(ctx, begin.Account, begin.ID, request.Actor)
	if err != nil {
		return nil, nil, err
	}
	c := &unitOfWork{run: createdRun(begin, store.Lease{}), meta: known}
	c.Documents = append(c.Documents, paper)
	err = c.addAudit(actorOrSystem(request.origin()), c.auditPlace(), audit.RunStarted{Provider: begin.Provider, Generation: begin.AfterGeneration + 1, Input: c.digest(string(request.Input))})
	return c, &known, err
}

// prepare makes the state key of a start free. It returns the id of the run if the same start was made before, and ErrStateKeyInUse if the key belongs to
// another run that must not be ended.
func (e *Executor) checkStateKey(ctx context.Context, request RunRequest, begin *store.NewRun) (same string, err error) {
	last, err := e.store.Get(ctx, begin.Account, begin.StateKey)
	switch {
	case errors.Is(err, store.ErrNotFound): // or it was forgotten meanwhile
		begin.AfterGeneration = 0 //mutate:start-after-forgotten-run
		return "", nil
	case err != nil:
		return "", err
	}
	begin.AfterGeneration = last.Generation
	switch {
	case last.InputDigest == begin.InputDigest: //mutate:start-idempotent
		return last.ID, nil
	case !last.Status.Active() && !request.ReserveStateKey:
		return "", nil
	case !request.Supersede || request.ReserveStateKey: //mutate:supersede-only-on-request
		return "", fmt.Errorf("%w: %q", ErrStateKeyInUse, begin.StateKey)
	}
	if err = e.endRun(ctx, last, request.origin(), store.StatusSuperseded); errors.Is(err, store.ErrNotFound) {
		return "", nil // it ended by itself
	}
	return "", err
}

// createdRun is the run that was just created, without reading it back.
func createdRun(n store.NewRun, lease store.Lease) store.Run {
	return store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: n.AfterGeneration + 1, Provider: n.Provider, Graph: n.Graph,
		ProviderRef: n.ProviderRef, Input: n.Input, InputDigest: n.InputDigest, Status: store.StatusRunning, Fence: lease.Fence, Owner: n.Owner,
	}
}

func (e *Executor) resume(ctx context.Context, request RunRequest) (fermata.Outcome, error) {
	_ = e.renewOverdue(ctx) // a decision may claim its run; who cannot renew cannot claim, either
	l, err := e.loadSnapshot(ctx, request.Account, request.StateKey)
	if err == nil {
		err = e.loadOriginalRun(ctx, &l, request.Targets)
	}
	if err != nil {
		return nil, err
	}
	ctx, end := e.traceDecision(ctx, l.Run, request)
	receipt, err := e.recordDecision(ctx, &l, request)
	end(receipt, err)
	run := l.Run
	if err == nil && receipt.Result != store.ResultAccepted {
		err = e.storeRefusal(ctx, run, receipt)
		err = cmp.Or(e.logStoreRefusal(ctx, run, request, err), err) // who is told does not come again
	}
	switch {
	case errors.Is(err, errVoteCounted): // the run waits for more people
		if before, ok := errors.AsType[*voteCountedError](err); ok {
			run.ID = before.run
		}
		return e.lastOutcome(ctx, run)
	case errors.Is(err, store.ErrResumeIDReused):
		return nil, ErrResumeIDReused
	case isNotFound(err): // it was forgotten while somebody made up their mind
		return nil, fmt.Errorf("%w: %q", ErrRunNotFound, run.StateKey)
	case err != nil:
		return nil, err
	}
	return e.awaitOutcome(ctx, request, awaitTarget{run: receipt.Run, stateKey: run.StateKey, execution: e.executeAfterDecision(ctx, &l, request, receipt)})
}

// restsAt is what a run came to, or else the outcome with which it came to rest last.
func (e *Executor) lastOutcome(ctx context.Context, run store.Run) (fermata.Outcome, error) {
	now, err := e.findRun(ctx, run.Account, run.StateKey)
	if err != nil {
		return nil, err
	}
	if now.ID != run.ID {
		return e.RunOutcome(ctx, run.Account, run.ID)
	}
	if outcome, err := e.currentOutcome(now, true); outcome != nil || err != nil {
		return outcome, err
	}
	return e.decodeOutcome(now.Account, now.ID, now.Outcome)
}

func (e *Executor) findRun(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := e.store.Get(ctx, account, stateKey)
	if errors.Is(err, store.ErrNotFound) {
		return run, fmt.Errorf("%w: %q", ErrRunNotFound, stateKey)
	}
	return run, err
}

// Cancel ends a run, on somebody's behalf; the zero From is the system. Whoever works on it loses it, and what it waits for is withdrawn. It returns ErrRunEnded if the run is over.
func (e *Executor) Cancel(ctx context.Context, account, stateKey string, by desk.From) error {
	run, err := e.findRun(ctx, account, stateKey)
	if err != nil {
		return err
	}
	if err = e.endRun(ctx, run, by, store.StatusCancelled); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q is %s", ErrRunEnded, stateKey, run.Status)
	}
	return err
}

func validateNames(r RunRequest) error {
	names := []struct{ what, name string }{
		{"the account", r.Account}, {"the state key", r.StateKey}, {"the start id", r.StartID}, {"the resume id", r.ResumeID}, {"the actor", r.Actor}, {"via", r.Via},
	}
	for _, n := range names {
		if len(n.name) > MaxName {
			return fmt.Errorf("%w: %s has %d bytes; %d are allowed", ErrInvalid, n.what, len(n.name), MaxName)
		}
	}
	if r.StateKey == "." || r.StateKey == ".." {
		return fmt.Errorf("%w: the state key %q means another folder in an address: nobody could look at the run with a browser", ErrInvalid, r.StateKey)
	}
	return nil
}

// validateJSON refuses what is no JSON, or too much of it.
func validateJSON(what string, data json.RawMessage, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: %s has %d bytes; %d are allowed", ErrInvalid, what, len(data), limit)
	}
	if err := strictjson.CheckValue(data); err != nil { //mutate:answer-strict-json
		return fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
	}
	return nil
}

func hashNamed(name string, data []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", name)
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// IsRepeat reports whether a start is the one that a run began with: then it begins nothing, and is told what became of the run.
func IsRepeat(start RunRequest, run store.Run) bool { return run.InputDigest == startDigest(start) }

// startDigest is the same for all repetitions of a start, and for nothing else.
func startDigest(r RunRequest) string { return hashNamed(r.Graph+"\n"+r.StartID, r.Input) }

// resumeDigest is the same for all repetitions of a request, and for nothing else.
func resumeDigest(r RunRequest) string {
	body, err := json.Marshal(struct { //mutate:resume-body-compared
		StateKey string
		Value    json.RawMessage
		Targets  map[string]Answer
	}{r.StateKey, r.Value, r.Targets})
	if err != nil { // no JSON: its bytes will do, and it will be refused
		body = append([]byte(r.StateKey), r.Value...)
	}
	return hashNamed("resume", body)
}
