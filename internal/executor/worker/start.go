package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/tracing"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// StartRequest starts a run. The same start can be repeated at will, and counts once.
type StartRequest struct {
	Account string
	// StateKey is the public handle of the run; if it is empty a new one is made.
	StateKey string
	// Graph is the graph id, as "inproc:content-review".
	Graph string
	Input json.RawMessage
	// StartID, if given, tells a start from another one of the same graph with the same input.
	StartID string
	// Supersede ends the run that has the state key, if it began with something else.
	Supersede bool
	// ReserveStateKey keeps the state key for this start alone: another one is refused even after
	// the run is over.
	ReserveStateKey bool
	// Actor has the run started. Via is the channel, Auth how strongly the actor was authenticated,
	// Kind what it is; a person by default.
	Actor, Via string
	Auth       requirement.Auth
	Kind       desk.ActorKind
	// EndUser is the person that the agent talks to, in a conversation. Questions of kinds with
	// [fermata.ForEndUser] are for them; "" if there is none.
	EndUser string
	// Wait is how long to wait for the outcome; 0 is Config.Wait, and a negative one does not wait.
	Wait time.Duration
}

// origin is the actor who starts a run, or has one ended for it.
func (r StartRequest) origin() desk.From {
	return desk.From{Actor: desk.Actor{ID: r.Actor, Kind: cmp.Or(r.Kind, desk.ActorHuman), Auth: r.Auth}, Via: r.Via}
}

// Start creates a run and begins to execute it. It returns the run whose outcome the caller gets: a
// repeated start gets that of the first.
func (w *Worker) Start(ctx context.Context, request StartRequest) (target await.Target, err error) {
	ctx, span := w.tracing.Tracer().Start(ctx, "fermata.start")
	defer span.End()
	p, g, err := w.providers.Find(request.Graph)
	if err != nil {
		return target, err
	}
	if err := errs.ValidateJSON("the input", request.Input, errs.MaxInput); err != nil {
		return target, err
	}
	begin := store.NewRun{
		Account: request.Account, ID: ident.Random("run"), StateKey: request.StateKey, Provider: p.Name(), Graph: g.Name, Input: request.Input,
		InputDigest: StartDigest(request), Owner: w.config.Owner, Lease: w.config.Lease,
	}
	if begin.StateKey == "" {
		begin.StateKey = ident.Random("key")
	}
	target = await.Target{Account: begin.Account, Run: begin.ID, StateKey: begin.StateKey, Wait: request.Wait}
	for try := 0; ; try++ {
		dropped := w.docs.MetaCache.DropCount()
		lease, known, err := w.tryCreate(ctx, request, &begin)
		if err == nil {
			w.docs.MetaCache.Put(store.Key{Account: begin.Account, Run: begin.ID}, *known, dropped)
			target.Execution = w.launch(ctx, &store.ClaimedRun{Lease: lease, Run: createdRun(begin, lease)}, Preloaded{Meta: known, input: request.Input})
			return target, nil
		}
		if errors.Is(err, store.ErrExists) && try == retry.MaxTries {
			err = fmt.Errorf("%w: %q", errs.ErrStateKeyInUse, begin.StateKey)
		}
		if !errors.Is(err, store.ErrExists) {
			return target, err
		}
		// Most state keys are new, so they are looked up only now: is the run that has it the same
		// start, or another one?
		same, err := w.checkStateKey(ctx, request, &begin)
		if err != nil {
			return target, err
		}
		if same != "" { // a repetition: its caller gets the outcome of the first start
			target.Run = same
			return target, nil
		}
	}
}

// tryCreate tries to create a run. It returns store.ErrExists if the state key is not free, or was
// not when begin.After was read: see checkStateKey.
func (w *Worker) tryCreate(ctx context.Context, request StartRequest, begin *store.NewRun) (store.Lease, *docs.RunMeta, error) {
	paper, known, err := w.startWrites(ctx, request, *begin)
	if err != nil {
		return store.Lease{}, nil, err
	}
	begin.Writes = paper.Writes
	lease, err := w.store.Create(ctx, *begin)
	return lease, known, err
}

// startWrites returns what is written in the transaction that creates a run.
func (w *Worker) startWrites(ctx context.Context, request StartRequest, begin store.NewRun) (*txn.Tx, *docs.RunMeta, error) {
	p, _, err := w.providers.Find(request.Graph)
	if err != nil {
		return nil, nil, err
	}
	meta := docs.RunMeta{Requester: request.Actor, EndUser: request.EndUser, Trace: tracing.TraceParent(ctx)}
	if reader, ok := p.(origin.Reader); ok {
		meta.Origin = reader.Origin(request.Input)
	}
	known, paper, err := w.docs.NewMeta(begin.ID, meta)
	if err != nil {
		return nil, nil, err
	}
	c := txn.New(createdRun(begin, store.Lease{}), known, time.Time{})
	c.Documents = append(c.Documents, paper)
	adopter, ok := p.(provider.Adopter)
	err = c.AddAudit(auditrec.ActorOrSystem(request.origin()), c.AuditPlace(), audit.RunStarted{
		Provider: begin.Provider, Generation: begin.AfterGeneration + 1, Input: c.Digest(string(request.Input)), Adopted: ok && adopter.Adopts(request.Input),
	})
	return c, &known, err
}

// checkStateKey checks whether a start may use its state key. It returns the id of the run if the
// same start was made before, and ErrStateKeyInUse if the key belongs to another run that must not
// be ended.
func (w *Worker) checkStateKey(ctx context.Context, request StartRequest, begin *store.NewRun) (same string, err error) {
	last, err := w.store.Get(ctx, begin.Account, begin.StateKey)
	switch {
	case errors.Is(err, store.ErrNotFound): // or it was deleted
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
		return "", fmt.Errorf("%w: %q", errs.ErrStateKeyInUse, begin.StateKey)
	}
	if err = w.requests.EndRun(ctx, last, request.origin(), store.StatusSuperseded); errors.Is(err, store.ErrNotFound) {
		return "", nil // it ended by itself
	}
	return "", err
}

// createdRun returns the run that was just created, without reading it back.
func createdRun(n store.NewRun, lease store.Lease) store.Run {
	return store.Run{
		Account: n.Account, ID: n.ID, StateKey: n.StateKey, Generation: n.AfterGeneration + 1, Provider: n.Provider, Graph: n.Graph,
		InputDigest: n.InputDigest, Status: store.StatusRunning, Fence: lease.Fence, Owner: n.Owner,
	}
}

// StartDigest returns a digest that is the same for all repetitions of a start, and for nothing
// else.
func StartDigest(r StartRequest) string { return ids.Hash(r.Graph+"\n"+r.StartID, r.Input) }
