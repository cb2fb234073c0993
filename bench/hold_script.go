package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// script is what the executor really writes for one run: bare SQL does as much, and no more. It is taken down from the executor itself, so
// that the two sides stay equal when the executor learns to do with less.
type script struct {
	start, decide []stage
	// reads counts what the executor reads besides, by act and name.
	reads map[act]map[string]int
	// run and interrupt are the ids of the run and of its question, as they stand in the names of parts, in papers and in lines of the log.
	run, interrupt string
}

// scriptKey is the state key of the run that is taken down.
const scriptKey = "key-0"

// stage is one transaction that writes: one of [creates], [saves], [rests], [decides], [claims] and [amends].
//
//sumtype:decl
type stage interface{ stage() }

type (
	creates struct{ run store.NewRun }
	saves   struct {
		base  int64
		delta store.Delta
	}
	rests   struct{ rest store.Rest }
	decides struct{ decision store.Decision }
	claims  struct{ claim store.Claim }
	amends  struct{ beside store.Beside }
)

func (creates) stage() {}
func (saves) stage()   {}
func (rests) stage()   {}
func (decides) stage() {}
func (claims) stage()  {}
func (amends) stage()  {}

// unhurried is for how long an executor keeps saves back that must not have one more because the machine was busy for a moment.
const unhurried = time.Hour

// takeDown lets the executor take a run from its start to its end, in a database of its own.
func takeDown(ctx context.Context, on ground, sealer executor.Box, p piece) (*script, error) {
	place, err := on.room()
	if err != nil {
		return nil, err
	}
	kept, err := on.open(ctx, place)
	if err != nil {
		return nil, err
	}
	r := &recorder{Store: kept, reads: map[act]map[string]int{starting: {}, deciding: {}}, steps: map[act][]stage{}, now: starting}
	e, err := newExecuting(executor.Config{Store: r, Box: sealer, SaveDelay: unhurried}, p, kept.Close)
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	err = e.start(ctx, scriptKey)
	r.turn(deciding)
	if err == nil {
		err = e.decide(ctx, scriptKey)
	}
	if err := errors.Join(err, e.close()); err != nil {
		return nil, err
	}
	s := &script{start: r.steps[starting], decide: r.steps[deciding], reads: r.reads}
	for _, one := range s.start {
		switch one := one.(type) {
		case creates:
			s.run = one.run.ID
		case rests:
			if len(one.rest.Open) == 1 {
				s.interrupt = one.rest.Open[0].ID
			}
		case saves, decides, claims, amends: // They name no more than these two did.
		}
	}
	if s.run == "" || s.interrupt == "" {
		return nil, errors.New("the executor has shown no question")
	}
	s.leaveOut()
	return s, nil
}

// leaveOut leaves out what is deleted and was never there: parts that came and went between two saves. Bare SQL has no use for that.
func (s *script) leaveOut() {
	there := map[string]bool{}
	for _, steps := range [][]stage{s.start, s.decide} {
		for i, one := range steps {
			rested, ok := one.(rests)
			if !ok || rested.rest.State == nil {
				continue
			}
			state := *rested.rest.State
			state.Delta.Delete = slices.DeleteFunc(slices.Clone(state.Delta.Delete), func(name string) bool { return !there[name] })
			for _, name := range state.Delta.Delete {
				delete(there, name)
			}
			for _, put := range state.Delta.Put {
				there[put.Name] = true
			}
			rested.rest.State = &state
			steps[i] = rested
		}
	}
}

// String says how many transactions of which kind there are.
func (s *script) String() string {
	return fmt.Sprintf("start→wait: %s; decide→done: %s", describeSteps(s.start, s.reads[starting]), describeSteps(s.decide, s.reads[deciding]))
}

func describeSteps(steps []stage, reads map[string]int) string {
	var names []string
	for _, one := range steps {
		switch one := one.(type) {
		case creates:
			names = append(names, "create")
		case saves:
			names = append(names, "save")
		case rests:
			name := "rest " + string(one.rest.Status)
			if one.rest.State != nil {
				name += " with the state"
			}
			names = append(names, name)
		case decides:
			name := "decide"
			if one.decision.Claim != nil {
				name += " and claim"
			}
			names = append(names, name)
		case claims:
			names = append(names, "claim")
		case amends:
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

// recorder takes down what an executor writes, and counts what it reads.
type recorder struct {
	store.Store

	mu    sync.Mutex
	now   act
	steps map[act][]stage
	reads map[act]map[string]int
}

func (r *recorder) turn(to act) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = to
}

func (r *recorder) note(s stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps[r.now] = append(r.steps[r.now], s)
}

func (r *recorder) read(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[r.now][name]++
}

func (r *recorder) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	r.note(creates{run})
	return r.Store.Create(ctx, run)
}

// Claim takes down what is for one run; that a worker looks for any is not part of an operation.
func (r *recorder) Claim(ctx context.Context, claim store.Claim) (*store.Work, error) {
	if claim.Run != "" {
		r.note(claims{claim})
	}
	return r.Store.Claim(ctx, claim)
}

func (r *recorder) Rest(ctx context.Context, lease store.Lease, rest store.Rest) (store.Status, error) {
	r.note(rests{rest})
	return r.Store.Rest(ctx, lease, rest)
}

func (r *recorder) Decide(ctx context.Context, decision store.Decision) (store.Receipt, error) {
	r.note(decides{decision})
	return r.Store.Decide(ctx, decision)
}

func (r *recorder) Amend(ctx context.Context, account string, beside store.Beside) error {
	if account == benchAccount { // what the process does for itself, as its heartbeat, is for no run
		r.note(amends{beside})
	}
	return r.Store.Amend(ctx, account, beside)
}

func (r *recorder) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	if account == benchAccount {
		r.read("Paper " + string(kind))
	}
	return r.Store.Paper(ctx, account, kind, id)
}

func (r *recorder) Now(ctx context.Context) (time.Time, error) {
	r.read("Now")
	return r.Store.Now(ctx)
}

func (r *recorder) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	r.read("Get")
	return r.Store.Get(ctx, account, stateKey)
}

func (r *recorder) Standing(ctx context.Context, account, stateKey string, own store.PaperKind) (store.Standing, error) {
	r.read("Standing")
	return r.Store.Standing(ctx, account, stateKey, own)
}

func (r *recorder) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	r.read("Interrupts")
	return r.Store.Interrupts(ctx, account, run)
}

func (r *recorder) Resumed(ctx context.Context, account, actor, id string) (store.Receipt, error) {
	r.read("Resumed")
	return r.Store.Resumed(ctx, account, actor, id)
}

func (r *recorder) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	r.read("Load")
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
	c.recorder.read("Load")
	return c.Checkpoints.Load(ctx, key)
}

func (c recordedCheckpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	c.recorder.note(saves{base, delta})
	return c.Checkpoints.Save(ctx, key, base, delta)
}
