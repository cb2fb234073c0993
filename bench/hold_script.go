package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// script is what the executor writes for one run: raw SQL does exactly the same. It is recorded
// from the executor itself, so that the two sides stay equal when the executor needs less.
type script struct {
	start, decide []scriptStep
	// reads counts additional reads of the executor, by operation and name.
	reads map[operation]map[string]int
	// run and interrupt are the ids of the run and its interrupt, as they occur in part names,
	// documents and audit records.
	run, interrupt string
}

// scriptKey is the state key of the recorded run.
const scriptKey = "key-0"

// scriptStep is one writing transaction: one of [createStep], [saveStep], [endStep], [decideStep],
// [claimStep] and [amendStep].
//
//sumtype:decl
type scriptStep interface{ isScriptStep() }

type (
	createStep struct{ run store.NewRun }
	saveStep   struct {
		base  int64
		delta store.Delta
	}
	endStep    struct{ end store.ExecutionEnd }
	decideStep struct{ decision store.Decision }
	claimStep  struct{ claim store.Claim }
	amendStep  struct{ writes store.Writes }
)

func (createStep) isScriptStep() {}
func (saveStep) isScriptStep()   {}
func (endStep) isScriptStep()    {}
func (decideStep) isScriptStep() {}
func (claimStep) isScriptStep()  {}
func (amendStep) isScriptStep()  {}

// noSaveDelay is the save delay during recording, so that a busy machine does not cause an
// additional save.
const noSaveDelay = time.Hour

// recordScript lets the executor process a run from start to end, in its own database.
func recordScript(ctx context.Context, db database, sealer executor.Sealer, p workload) (*script, error) {
	place, err := db.create()
	if err != nil {
		return nil, err
	}
	st, err := db.open(ctx, place)
	if err != nil {
		return nil, err
	}
	r := &recorder{Store: st, reads: map[operation]map[string]int{opStart: {}, opDecide: {}}, steps: map[operation][]scriptStep{}, operation: opStart}
	e, err := newExecutorSide(executor.Config{Store: r, Sealer: sealer, SaveDelay: noSaveDelay}, p, st.Close)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	err = e.start(ctx, scriptKey)
	r.setOperation(opDecide)
	if err == nil {
		err = e.decide(ctx, scriptKey)
	}
	if err := errors.Join(err, e.close()); err != nil {
		return nil, err
	}
	s := &script{start: r.steps[opStart], decide: r.steps[opDecide], reads: r.reads}
	for _, one := range s.start {
		switch one := one.(type) {
		case createStep:
			s.run = one.run.ID
		case endStep:
			if len(one.end.Open) == 1 {
				s.interrupt = one.end.Open[0].ID
			}
		case saveStep, decideStep, claimStep, amendStep: // They contain no other names.
		}
	}
	if s.run == "" || s.interrupt == "" {
		return nil, errors.New("the executor has created no request")
	}
	s.dropTransient()
	return s, nil
}

// dropTransient removes deletions of parts that were created and deleted between two saves. Raw SQL
// does not need them.
func (s *script) dropTransient() {
	there := map[string]bool{}
	for _, steps := range [][]scriptStep{s.start, s.decide} {
		for i, one := range steps {
			rested, ok := one.(endStep)
			if !ok || rested.end.Checkpoint == nil {
				continue
			}
			state := *rested.end.Checkpoint
			state.Delta.Delete = slices.DeleteFunc(slices.Clone(state.Delta.Delete), func(name string) bool { return !there[name] })
			for _, name := range state.Delta.Delete {
				delete(there, name)
			}
			for _, put := range state.Delta.Put {
				there[put.Name] = true
			}
			rested.end.Checkpoint = &state
			steps[i] = rested
		}
	}
}

// String returns the number of transactions of each kind.
func (s *script) String() string {
	return fmt.Sprintf("start→wait: %s; decide→done: %s", describeSteps(s.start, s.reads[opStart]), describeSteps(s.decide, s.reads[opDecide]))
}

func describeSteps(steps []scriptStep, reads map[string]int) string {
	var names []string
	for _, one := range steps {
		switch one := one.(type) {
		case createStep:
			names = append(names, "create")
		case saveStep:
			names = append(names, "save")
		case endStep:
			name := "rest " + string(one.end.Status)
			if one.end.Checkpoint != nil {
				name += " with the state"
			}
			names = append(names, name)
		case decideStep:
			name := "decide"
			if one.decision.Claim != nil {
				name += " and claim"
			}
			names = append(names, name)
		case claimStep:
			names = append(names, "claim")
		case amendStep:
			names = append(names, "amend")
		}
	}
	var read []string
	for name, n := range reads {
		read = append(read, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(read)
	return fmt.Sprintf("%d transactions (%s) and the reads %s", len(steps), strings.Join(names, ", "), strings.Join(read, ", "))
}

// recorder records what an executor writes, and counts what it reads.
type recorder struct {
	store.Store

	mu        sync.Mutex
	operation operation
	steps     map[operation][]scriptStep
	reads     map[operation]map[string]int
}

func (r *recorder) setOperation(to operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operation = to
}

func (r *recorder) add(s scriptStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps[r.operation] = append(r.steps[r.operation], s)
}

func (r *recorder) countRead(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[r.operation][name]++
}

func (r *recorder) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	r.add(createStep{run})
	return r.Store.Create(ctx, run)
}

// Claim records claims of one run; polling by a worker is not part of an operation.
func (r *recorder) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	if claim.Run != "" {
		r.add(claimStep{claim})
	}
	return r.Store.Claim(ctx, claim)
}

func (r *recorder) EndExecution(ctx context.Context, lease store.Lease, end store.ExecutionEnd) (store.Status, error) {
	r.add(endStep{end})
	return r.Store.EndExecution(ctx, lease, end)
}

func (r *recorder) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	r.add(decideStep{decision})
	return r.Store.Decide(ctx, decision)
}

func (r *recorder) CommitWrites(ctx context.Context, account string, writes store.Writes) error {
	// documents of the process, such as its heartbeat, belong to no run
	if account == benchAccount {
		r.add(amendStep{writes})
	}
	return r.Store.CommitWrites(ctx, account, writes)
}

func (r *recorder) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if account == benchAccount {
		r.countRead("Paper " + string(kind))
	}
	return r.Store.Document(ctx, account, kind, id)
}

func (r *recorder) Now(ctx context.Context) (time.Time, error) {
	r.countRead("Now")
	return r.Store.Now(ctx)
}

func (r *recorder) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	r.countRead("Get")
	return r.Store.Get(ctx, account, stateKey)
}

func (r *recorder) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	r.countRead("Standing")
	return r.Store.RunSnapshot(ctx, account, stateKey, own)
}

func (r *recorder) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	r.countRead("Interrupts")
	return r.Store.Interrupts(ctx, account, run)
}

func (r *recorder) Receipt(ctx context.Context, account, actor, id string) (store.DecisionReceipt, error) {
	r.countRead("Resumed")
	return r.Store.Receipt(ctx, account, actor, id)
}

func (r *recorder) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	r.countRead("Load")
	return r.Store.Load(ctx, key)
}

func (r *recorder) Fenced(lease store.Lease) store.Checkpoints {
	return recordedCheckpoints{r.Store.Fenced(lease), r}
}

type recordedCheckpoints struct {
	store.Checkpoints
	recorder *recorder
}

func (c recordedCheckpoints) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	c.recorder.countRead("Load")
	return c.Checkpoints.Load(ctx, key)
}

func (c recordedCheckpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	c.recorder.add(saveStep{base, delta})
	return c.Checkpoints.Save(ctx, key, base, delta)
}
