package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/store"
)

// bare plays the script in plain SQL: no engine, no sealing, no look at anything twice. What a program that promises the same cannot do
// without is there: the conditions of each change, and the two reads of a decision (what waits, and the checkpoint to go on from).
type bare struct {
	script *script
	sql    player
}

// player is one database's SQL. A change whose condition does not hold is errRefused.
type player interface {
	create(ctx context.Context, p *part, n store.NewRun) error
	// rest also saves the run's state.
	rest(ctx context.Context, p *part, rest store.Rest) error
	// decide also takes the run, and loads its state.
	decide(ctx context.Context, p *part, d store.Decision) error
	// find fills in what waits under a state key.
	find(ctx context.Context, p *part) error
	close() error
}

const notLearnt = ": bare SQL has to learn that first"

var errRefused = errors.New("the database refused: somebody else has changed the run")

// part is one run of the script, under names of its own.
type part struct {
	key, run, interrupt string
	fence               int64
	events              int64 // it has so many
	checkpoint          int64 // the id of its checkpoint, where it has one
	version             int64 // that the checkpoint had when the run was taken
	bytes               int   // that it had then
	revision            int64 // of its request when that was looked at
	paper               int   // bytes that the request and the dossier had then
}

func (b *bare) start(ctx context.Context, key string) error {
	p := &part{key: key, run: ident.Random("run"), interrupt: ident.Random("int"), fence: 1}
	return b.play(ctx, p, b.script.start)
}

func (b *bare) decide(ctx context.Context, key string) error {
	p := &part{key: key}
	if err := b.sql.find(ctx, p); err != nil {
		return err
	}
	if err := b.play(ctx, p, b.script.decide); err != nil {
		return err
	}
	if p.version == 0 || p.bytes == 0 {
		return errors.New("there was no checkpoint to go on from")
	}
	if p.revision == 0 || p.paper == 0 {
		return errors.New("there was no request to decide on")
	}
	return nil
}

func (b *bare) close() error { return b.sql.close() }

func (b *bare) play(ctx context.Context, p *part, steps []stage) error {
	for _, one := range steps {
		if err := b.playOne(ctx, p, one); err != nil {
			return fmt.Errorf("%T: %w", one, err)
		}
	}
	return nil
}

func (b *bare) playOne(ctx context.Context, p *part, one stage) error {
	switch one := one.(type) {
	case creates:
		one.run.Beside = b.beside(p, one.run.Beside)
		return b.sql.create(ctx, p, one.run)
	case rests:
		asks, applies := len(one.rest.Open) == 1 && len(one.rest.Applied) == 0, len(one.rest.Open) == 0 && len(one.rest.Applied) == 1
		if one.rest.State == nil || !asks && !applies || asks != (one.rest.State.Base == 0) || applies != one.rest.State.Drop {
			return errors.New("the script rests otherwise than with the first state and a question, or with its answer and the end of the state" + notLearnt)
		}
		one.rest.State = &store.Save{Base: one.rest.State.Base, Delta: b.renamed(p, one.rest.State.Delta), Drop: one.rest.State.Drop}
		one.rest.Beside = b.beside(p, one.rest.Beside)
		return b.sql.rest(ctx, p, one.rest)
	case decides:
		if one.decision.Claim == nil || len(one.decision.Answers) != 1 {
			return errors.New("the script decides without taking the run, or something else than one question" + notLearnt)
		}
		one.decision.Beside = b.beside(p, one.decision.Beside)
		return b.sql.decide(ctx, p, one.decision)
	case saves, claims, amends:
		return errors.New("the script saves, claims or amends in a transaction of its own" + notLearnt)
	}
	return fmt.Errorf("bare SQL does not know the step %T", one)
}

// renamed is a delta with the names that the parts of this run have.
func (b *bare) renamed(p *part, delta store.Delta) store.Delta {
	own := store.Delta{Put: make([]store.Part, len(delta.Put)), Delete: make([]string, len(delta.Delete))}
	for i, put := range delta.Put {
		own.Put[i] = store.Part{Name: strings.ReplaceAll(put.Name, b.script.interrupt, p.interrupt), Data: put.Data}
	}
	for i, name := range delta.Delete {
		own.Delete[i] = strings.ReplaceAll(name, b.script.interrupt, p.interrupt)
	}
	return own
}

// beside is what the script writes beside a change, with the names of this run. What is sealed stays as it is: nobody here could tell.
func (b *bare) beside(p *part, recorded store.Beside) (own store.Beside) {
	names := strings.NewReplacer(b.script.run, p.run, b.script.interrupt, p.interrupt, resumeName(scriptKey), resumeName(p.key), scriptKey, p.key)
	for _, paper := range recorded.Papers {
		paper.ID, paper.Run = names.Replace(paper.ID), names.Replace(paper.Run)
		if paper.Facts != nil {
			paper.Facts = []byte(names.Replace(string(paper.Facts)))
		}
		if paper.Base != 0 {
			paper.Base = p.revision
		}
		own.Papers = append(own.Papers, paper)
	}
	for _, line := range recorded.Audit {
		own.Audit = append(own.Audit, []byte(names.Replace(string(line))))
	}
	return own
}

// resumeName is the paper of a resume id, which says that the store has its answer. Whoever decides has to know that there is none yet.
func resumeName(key string) string { return ident.Derive("res", benchActor, key) }
