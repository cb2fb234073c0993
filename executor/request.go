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

// Request starts a run, or resumes it if it has a resume id.
type Request struct {
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
	Once bool

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
func (r Request) from() desk.From {
	return desk.From{Actor: desk.Actor{ID: r.Actor, Kind: cmp.Or(r.Kind, desk.Human), Auth: r.Auth}, Via: r.Via}
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
func (e *Executor) Run(ctx context.Context, request Request) (fermata.Outcome, error) {
	if e.closing() {
		return nil, ErrClosed
	}
	if err := checkNames(request); err != nil {
		return nil, err
	}
	begin := e.resume
	if request.ResumeID == "" {
		begin = e.start
	}
	outcome, err := begin(ctx, request)
	return outcome, e.noteRoom(err)
}

func (e *Executor) start(ctx context.Context, request Request) (fermata.Outcome, error) {
	ctx, span := e.tracer().Start(ctx, "fermata.start")
	defer span.End()
	p, g, err := e.graph(request.Graph)
	if err != nil {
		return nil, err
	}
	if err := checkJSON("the input", request.Input, MaxInput); err != nil {
		return nil, err
	}
	begin := store.NewRun{
		Account: request.Account, ID: ident.Random("run"), StateKey: request.StateKey, Provider: p.Name(), Graph: g.Name,
		InputDigest: startDigest(request), Owner: e.config.Owner, Lease: e.config.Lease,
	}
	begin.Input = e.seal(begin.Account, store.SealedInput, begin.ID, request.Input)
	if begin.StateKey == "" {
		begin.StateKey = ident.Random("key")
	}
	for try := 0; ; try++ {
		dropped := e.dossiers.dropped()
		lease, known, err := e.create(ctx, request, &begin)
		if err == nil {
			e.dossiers.put(store.Key{Account: begin.Account, Run: begin.ID}, *known, dropped)
			flight := e.launch(ctx, &store.Work{Lease: lease, Run: begun(begin, lease)}, atHand{dossier: known})
			return e.await(ctx, request, target{run: begin.ID, stateKey: begin.StateKey, flight: flight})
		}
		if errors.Is(err, store.ErrExists) && try == maxTries {
			err = fmt.Errorf("%w: %q", ErrInUse, begin.StateKey)
		}
		if !errors.Is(err, store.ErrExists) {
			return nil, err
		}
		// Most state keys are new, so they are looked up only now: is the run that has it the same start, or another one?
		same, err := e.prepare(ctx, request, &begin)
		if err != nil {
			return nil, err
		}
		if same != "" { // a repetition: its caller gets the outcome of the first start
			return e.await(ctx, request, target{run: same, stateKey: begin.StateKey})
		}
	}
}

// create tries to begin a run. It returns store.ErrExists if the state key is not free, or was not when begin.After was read: see prepare.
func (e *Executor) create(ctx context.Context, request Request, begin *store.NewRun) (store.Lease, *dossier, error) {
	paper, known, err := e.beginning(ctx, request, *begin)
	if err != nil {
		return store.Lease{}, nil, err
	}
	begin.Beside = paper.Beside
	lease, err := e.store.Create(ctx, *begin)
	return lease, known, err
}

// beginning is what is written in the transaction that creates a run.
func (e *Executor) beginning(ctx context.Context, request Request, begin store.NewRun) (*filing, *dossier, error) {
	known, paper, err := e.newDossier(ctx, begin.Account, begin.ID, request.Actor)
	if err != nil {
		return nil, nil, err
	}
	c := &filing{run: begun(begin, store.Lease{}), dossier: known}
	c.Papers = append(c.Papers, paper)
	err = c.line(onBehalfOf(request.from()), c.place(), audit.RunStarted{Provider: begin.Provider, Generation: begin.After + 1, Input: c.digest(string(request.Input))})
	return c, &known, err
}

// prepare makes the state key of a start free. It returns the id of the run if the same start was made before, and ErrInUse if the key belongs to
// another run that must not be ended.
func (e *Executor) prepare(ctx context.Context, request Request, begin *store.NewRun) (same string, err error) {
	last, err := e.store.Get(ctx, begin.Account, begin.StateKey)
	switch {
	case errors.Is(err, store.ErrNotFound): // or it was forgotten meanwhile
		begin.After = 0 //mutate:start-after-forgotten-run
		return "", nil
	case err != nil:
		return "", err
	}
	begin.After = last.Generation
	switch {
	case last.InputDigest == begin.InputDigest: //mutate:start-idempotent
		return last.ID, nil
	case !last.Status.Alive() && !request.Once:
		return "", nil
	case !request.Supersede || request.Once: //mutate:supersede-only-on-request
		return "", fmt.Errorf("%w: %q", ErrInUse, begin.StateKey)
	}
	if err = e.end(ctx, last, request.from(), store.Superseded); errors.Is(err, store.ErrNotFound) {
		return "", nil // it ended by itself
	}
	return "", err
}

// begun is the run that was just created, without reading it back.
func begun(n store.NewRun, lease store.Lease) store.Run {
	return store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: n.After + 1, Provider: n.Provider, Graph: n.Graph,
		Ref: n.Ref, Input: n.Input, InputDigest: n.InputDigest, Status: store.Running, Fence: lease.Fence, Owner: n.Owner,
	}
}

func (e *Executor) resume(ctx context.Context, request Request) (fermata.Outcome, error) {
	_ = e.keepOwn(ctx) // a decision may claim its run; who cannot renew cannot claim, either
	l, err := e.look(ctx, request.Account, request.StateKey)
	if err == nil {
		err = e.lookBack(ctx, &l, request.Targets)
	}
	if err != nil {
		return nil, err
	}
	ctx, end := e.traceDecision(ctx, l.Run, request)
	receipt, err := e.decide(ctx, &l, request)
	end(receipt, err)
	run := l.Run
	if err == nil && receipt.Result != store.Accepted {
		err = e.refused(ctx, run, receipt)
		err = cmp.Or(e.logRefusal(ctx, run, request, err), err) // who is told does not come again
	}
	switch {
	case errors.Is(err, errCounted): // the run waits for more people
		if before, ok := errors.AsType[*countedError](err); ok {
			run.ID = before.run
		}
		return e.restsAt(ctx, run)
	case errors.Is(err, store.ErrReused):
		return nil, ErrReused
	case isNotFound(err): // it was forgotten while somebody made up their mind
		return nil, fmt.Errorf("%w: %q", ErrUnknownRun, run.StateKey)
	case err != nil:
		return nil, err
	}
	return e.await(ctx, request, target{run: receipt.Run, stateKey: run.StateKey, flight: e.follow(ctx, &l, request, receipt)})
}

// restsAt is what a run came to, or else the outcome with which it came to rest last.
func (e *Executor) restsAt(ctx context.Context, run store.Run) (fermata.Outcome, error) {
	now, err := e.find(ctx, run.Account, run.StateKey)
	if err != nil {
		return nil, err
	}
	if now.ID != run.ID {
		return e.Past(ctx, run.Account, run.ID)
	}
	if outcome, err := e.stands(now, true); outcome != nil || err != nil {
		return outcome, err
	}
	return e.openOutcome(now.Account, now.ID, now.Outcome)
}

func (e *Executor) find(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := e.store.Get(ctx, account, stateKey)
	if errors.Is(err, store.ErrNotFound) {
		return run, fmt.Errorf("%w: %q", ErrUnknownRun, stateKey)
	}
	return run, err
}

// Cancel ends a run, on somebody's behalf; the zero From is the system. Whoever works on it loses it, and what it waits for is withdrawn. It returns ErrOver if the run is over.
func (e *Executor) Cancel(ctx context.Context, account, stateKey string, by desk.From) error {
	run, err := e.find(ctx, account, stateKey)
	if err != nil {
		return err
	}
	if err = e.end(ctx, run, by, store.Cancelled); errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %q is %s", ErrOver, stateKey, run.Status)
	}
	return err
}

func checkNames(r Request) error {
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

// checkJSON refuses what is no JSON, or too much of it.
func checkJSON(what string, data json.RawMessage, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: %s has %d bytes; %d are allowed", ErrInvalid, what, len(data), limit)
	}
	if err := strictjson.CheckValue(data); err != nil { //mutate:answer-strict-json
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

// Repeats reports whether a start is the one that a run began with: then it begins nothing, and is told what became of the run.
func Repeats(start Request, run store.Run) bool { return run.InputDigest == startDigest(start) }

// startDigest is the same for all repetitions of a start, and for nothing else.
func startDigest(r Request) string { return digest(r.Graph+"\n"+r.StartID, r.Input) }

// bodyDigest is the same for all repetitions of a request, and for nothing else.
func bodyDigest(r Request) string {
	body, err := json.Marshal(struct { //mutate:resume-body-compared
		StateKey string
		Value    json.RawMessage
		Targets  map[string]Answer
	}{r.StateKey, r.Value, r.Targets})
	if err != nil { // no JSON: its bytes will do, and it will be refused
		body = append([]byte(r.StateKey), r.Value...)
	}
	return digest("resume", body)
}
