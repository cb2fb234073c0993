package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

// rawSQL executes the script in raw SQL, without an engine, encryption or repeated reads. It has
// what equal guarantees require: the conditions of each change, and the two reads of a decision
// (the open interrupt, and the checkpoint).
type rawSQL struct {
	script  *script
	backend rawBackend
}

// rawBackend is the SQL of one database. A change whose condition does not hold returns
// errNotApplied.
type rawBackend interface {
	create(ctx context.Context, p *rawRun, n store.NewRun) error
	// endExecution also saves the run's state.
	endExecution(ctx context.Context, p *rawRun, rest store.ExecutionEnd) error
	// decide also claims the run, and loads its state.
	decide(ctx context.Context, p *rawRun, d store.Decision) error
	// find fills in what waits under a state key.
	find(ctx context.Context, p *rawRun) error
	close() error
}

const notSupported = ": not supported by raw SQL"

var errNotApplied = errors.New("the change was not applied: the run was changed concurrently")

// rawRun is one run of the script, with its own names.
type rawRun struct {
	key, run, interrupt string
	fence               int64
	events              int64 // number of events
	checkpoint          int64 // the id of its checkpoint, if it has one
	version             int64 // of the checkpoint when the run was claimed
	bytes               int   // of the checkpoint then
	revision            int64 // of its request when it was read
	documents           int   // bytes of the request and the run metadata then
}

func (b *rawSQL) start(ctx context.Context, key string) error {
	p := &rawRun{key: key, run: ident.Random("run"), interrupt: ident.Random("int"), fence: 1}
	return b.runScript(ctx, p, b.script.start)
}

func (b *rawSQL) decide(ctx context.Context, key string) error {
	p := &rawRun{key: key}
	if err := b.backend.find(ctx, p); err != nil {
		return err
	}
	if err := b.runScript(ctx, p, b.script.decide); err != nil {
		return err
	}
	if p.version == 0 || p.bytes == 0 {
		return errors.New("there is no checkpoint to resume from")
	}
	if p.revision == 0 || p.documents == 0 {
		return errors.New("there is no request to decide")
	}
	return nil
}

func (b *rawSQL) close() error { return b.backend.close() }

func (b *rawSQL) runScript(ctx context.Context, p *rawRun, steps []scriptStep) error {
	for _, one := range steps {
		if err := b.runStep(ctx, p, one); err != nil {
			return fmt.Errorf("%T: %w", one, err)
		}
	}
	return nil
}

func (b *rawSQL) runStep(ctx context.Context, p *rawRun, one scriptStep) error {
	switch one := one.(type) {
	case createStep:
		one.run.Writes = b.renameWrites(p, one.run.Writes)
		return b.backend.create(ctx, p, one.run)
	case endStep:
		asks, applies := len(one.end.Open) == 1 && len(one.end.Applied) == 0, len(one.end.Open) == 0 && len(one.end.Applied) == 1
		if one.end.Checkpoint == nil || !asks && !applies || asks != (one.end.Checkpoint.BaseVersion == 0) || applies != one.end.Checkpoint.Drop {
			return errors.New("the script ends an execution otherwise than with the first state and an interrupt, or with its answer and the deletion of the state" + notSupported)
		}
		one.end.Checkpoint = &store.CheckpointSave{BaseVersion: one.end.Checkpoint.BaseVersion, Delta: b.renameParts(p, one.end.Checkpoint.Delta), Drop: one.end.Checkpoint.Drop}
		one.end.Writes = b.renameWrites(p, one.end.Writes)
		return b.backend.endExecution(ctx, p, one.end)
	case decideStep:
		if one.decision.Claim == nil || len(one.decision.Answers) != 1 {
			return errors.New("the script decides without claiming the run, or something other than one interrupt" + notSupported)
		}
		one.decision.Writes = b.renameWrites(p, one.decision.Writes)
		return b.backend.decide(ctx, p, one.decision)
	case saveStep, claimStep, amendStep:
		return errors.New("the script saves, claims or amends in a separate transaction" + notSupported)
	}
	return fmt.Errorf("raw SQL does not support the step %T", one)
}

// renameParts returns a delta with the part names of this run.
func (b *rawSQL) renameParts(p *rawRun, delta store.Delta) store.Delta {
	own := store.Delta{Put: make([]store.Part, len(delta.Put)), Delete: make([]string, len(delta.Delete))}
	for i, put := range delta.Put {
		own.Put[i] = store.Part{Name: strings.ReplaceAll(put.Name, b.script.interrupt, p.interrupt), Data: put.Data}
	}
	for i, name := range delta.Delete {
		own.Delete[i] = strings.ReplaceAll(name, b.script.interrupt, p.interrupt)
	}
	return own
}

// renameWrites returns the writes of a change with the names of this run. Encrypted values are not
// changed.
func (b *rawSQL) renameWrites(p *rawRun, recorded store.Writes) (own store.Writes) {
	names := strings.NewReplacer(b.script.run, p.run, b.script.interrupt, p.interrupt, resumeDocument(scriptKey), resumeDocument(p.key), scriptKey, p.key)
	for _, paper := range recorded.Documents {
		paper.ID, paper.Run = names.Replace(paper.ID), names.Replace(paper.Run)
		if paper.Index != nil {
			paper.Index = []byte(names.Replace(string(paper.Index)))
		}
		if paper.BaseRevision != 0 {
			paper.BaseRevision = p.revision
		}
		own.Documents = append(own.Documents, paper)
	}
	for _, line := range recorded.Audit {
		own.Audit = append(own.Audit, []byte(names.Replace(string(line))))
	}
	return own
}

// resumeDocument returns the id of the document of a resume id. A decision must check that it does
// not exist.
func resumeDocument(key string) string { return ident.Derive("res", benchActor, key) }
