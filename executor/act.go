package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// ErrDecides says that an act is a decision, which has to come with a resume id: see [Executor.Run].
var ErrDecides = errors.New("executor: a decision is made with a resume id")

// Act does something with a request that decides nothing: claim it, say that one looks at it, comment, delegate, snooze, ask back. It
// returns the request as it is then, store.ErrNotFound if there is none, or an error of package desk.
func (e *Executor) Act(ctx context.Context, account, id string, act desk.Act) (desk.Request, error) {
	switch act.(type) {
	case desk.Approve, desk.ApproveEdited, desk.Reject, desk.Respond, desk.Escape, desk.Withdraw:
		return desk.Request{}, ErrDecides
	}
	var doc desk.Request
	err := whileStale(ctx, func() (err error) {
		doc, err = e.act(ctx, account, id, act)
		return err
	})
	return doc, err
}

// act is one try. It returns ErrStale if the request was changed meanwhile.
func (e *Executor) act(ctx context.Context, account, id string, act desk.Act) (desk.Request, error) {
	asked, known, err := e.asked(ctx, account, id)
	if err != nil {
		return desk.Request{}, err
	}
	if done, err := desk.Repeated(known.Request, act); done || err != nil {
		return known.Request, err
	}
	name, from := desk.Origin(act)
	if asked.State == store.Withdrawn && known.State == desk.Open {
		over := &desk.OverError{State: desk.Withdrawn, Outcome: desk.Dropped, At: asked.Created}
		return known.Request, e.noteAct(ctx, asked, name, from, over)
	}
	c, err := e.filingFor(ctx, asked)
	if err != nil {
		return desk.Request{}, err
	}
	env, err := e.envFor(ctx, c, known)
	if err != nil {
		return desk.Request{}, err
	}
	change, err := desk.Apply(known.Request, act, env)
	if err != nil || !change.Changed() {
		return known.Request, e.noteAct(ctx, asked, name, from, err)
	}
	if change.Final != nil {
		return known.Request, ErrDecides
	}
	if err := e.file(c, change, known.revision); err != nil {
		return desk.Request{}, err
	}
	return change.Request, e.store.Amend(ctx, account, c.Beside)
}

// asked returns a question and its request, as they were at one moment, or store.ErrNotFound.
func (e *Executor) asked(ctx context.Context, account, id string) (store.Asked, *requested, error) {
	asked, err := e.store.Question(ctx, account, id)
	if err != nil {
		return store.Asked{}, nil, err
	}
	if asked.Request == nil {
		return store.Asked{}, nil, store.ErrNotFound
	}
	known, err := e.readRequest(*asked.Request)
	return asked, known, err
}

// filingFor begins the filing of a change of a request.
func (e *Executor) filingFor(ctx context.Context, asked store.Asked) (*filing, error) {
	c := &filing{run: whoAsked(asked)}
	var err error
	if c.dossier, err = e.dossierOf(ctx, asked.Account, asked.Run); err != nil {
		return nil, err
	}
	c.now, err = e.store.Now(ctx)
	return c, err
}

// whoAsked is the run that asked a question, as far as the question tells.
func whoAsked(asked store.Asked) store.Run {
	return store.Run{Account: asked.Account, ID: asked.Run, StateKey: asked.StateKey, Provider: asked.Provider, Graph: asked.Graph}
}

// Request returns the request of a question: who has voted, commented and so on. It returns store.ErrNotFound if there is none.
func (e *Executor) Request(ctx context.Context, account, id string) (desk.Request, error) {
	known, err := e.requestOf(ctx, account, id)
	if err != nil || known == nil {
		return desk.Request{}, cmp.Or(err, store.ErrNotFound)
	}
	return known.Request, nil
}

// end ends a run on somebody's behalf, and withdraws its open requests. It returns store.ErrNotFound if the run is over.
func (e *Executor) end(ctx context.Context, run store.Run, by desk.From, as store.Status) error {
	return whileStale(ctx, func() error {
		waits, beside, err := e.ending(ctx, run, by, as)
		if err == nil {
			//mutate:cancel-names-interrupts
			_, err = e.store.Cancel(ctx, run.Account, run.ID, as, waits, beside)
		}
		return err
	})
}

// ending is what is written with the end of a run that waits for these interrupts.
func (e *Executor) ending(ctx context.Context, run store.Run, by desk.From, as store.Status) (waits []string, beside store.Beside, err error) {
	c := &filing{run: run}
	if c.now, err = e.store.Now(ctx); err != nil {
		return nil, beside, err
	}
	if waits, err = e.withdrawOpen(ctx, c, "", string(as)); err != nil {
		return nil, beside, err
	}
	err = c.line(onBehalfOf(by), c.place(), audit.RunEnded{Status: string(as)})
	return waits, c.Beside, err
}

// Escape gives up the task that a question is part of: the run is cancelled, and its other requests are withdrawn.
func (e *Executor) Escape(ctx context.Context, account, id string, act desk.Escape) error {
	return whileStale(ctx, func() error { return e.escape(ctx, account, id, act) })
}

// escape is one try. It returns ErrStale if the request was changed meanwhile.
func (e *Executor) escape(ctx context.Context, account, id string, act desk.Escape) error {
	asked, known, err := e.asked(ctx, account, id)
	if err != nil {
		return err
	}
	if done, err := desk.Repeated(known.Request, act); done || err != nil {
		return err
	}
	if run, err := e.find(ctx, account, asked.StateKey); err != nil || run.ID != asked.Run || asked.State != store.Pending {
		return cmp.Or(err, fmt.Errorf("%w: %q", ErrOver, asked.StateKey))
	}
	c, err := e.filingFor(ctx, asked)
	if err != nil {
		return err
	}
	env, err := e.envFor(ctx, c, known)
	if err != nil {
		return err
	}
	change, err := desk.Apply(known.Request, act, env)
	if err != nil {
		return e.noteAct(ctx, asked, desk.NameEscape, act.From, err)
	}
	err = e.file(c, change, known.revision) // so that it ends this run, and not one that took its state key
	var waits []string
	if err == nil {
		waits, err = e.withdrawOpen(ctx, c, id, string(store.Cancelled))
	}
	if err == nil {
		err = c.line(personOf(act.From), c.place(), audit.RunEnded{Status: string(store.Cancelled)})
	}
	if err != nil {
		return err
	}
	_, err = e.store.Cancel(ctx, account, asked.Run, store.Cancelled, waits, c.Beside)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrOver, asked.StateKey)
	}
	return err
}

// withdrawOpen withdraws the open requests of a run, except for one whose end the caller files itself. Whoever asked is told of all of them. It returns
// what the run waits for: if it waits for something else by the time of its end, this is not all.
func (e *Executor) withdrawOpen(ctx context.Context, c *filing, but, why string) (waits []string, err error) {
	waits, err = e.waitsFor(ctx, c.run)
	if err != nil {
		return nil, err
	}
	for _, id := range waits {
		if err := e.tellWithdrawn(c, id, why); err != nil {
			return nil, err
		}
	}
	open := slices.DeleteFunc(slices.Clone(waits), func(id string) bool { return id == but })
	return waits, e.withdraw(ctx, c, open, why)
}

// waitsFor returns the questions of a run that nobody has decided; it is never nil.
func (e *Executor) waitsFor(ctx context.Context, run store.Run) ([]string, error) {
	asked, err := e.store.Interrupts(ctx, run.Account, run.ID)
	waits := []string{}
	for _, i := range asked {
		if i.State == store.Pending {
			waits = append(waits, i.ID)
		}
	}
	return waits, err
}

// withdraw files the withdrawal of requests, as far as they are open.
func (e *Executor) withdraw(ctx context.Context, c *filing, ids []string, why string) error {
	for _, id := range ids {
		if err := e.tellTime(ctx, c); err != nil {
			return err
		}
		known, err := e.requestOf(ctx, c.run.Account, id)
		if err != nil {
			return err
		}
		if known == nil || known.State != desk.Open {
			continue
		}
		change, err := desk.Apply(known.Request, desk.Withdraw{From: desk.From{Actor: desk.Service("executor")}, Reason: why}, e.env(c.now))
		if err != nil {
			return err
		}
		if err := e.file(c, change, known.revision); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many requests or notices are looked at in one go.
const atOnce = 100

// tick does what the routes of requests say is due: remind, page, ask more people. It also lets runs answer what people asked them. It does not let
// requests expire: sweep does.
func (e *Executor) tick() {
	var guard clockGuard
	for !e.closing() {
		e.watchKeys()
		e.complain("the routes of requests", e.ticks(&guard))
		e.complain("looking for what runs were asked", e.explain())
		e.rests(e.config.Poll)
	}
}

func (e *Executor) ticks(guard *clockGuard) error {
	now, err := e.store.Now(e.life)
	if err != nil || !guard.trusts(now) {
		return err
	}
	due, err := e.store.Due(e.life, store.RequestPaper, atOnce)
	var stuck tally
	for _, paper := range due {
		known, failure := e.readRequest(paper)
		pause := putOff
		if failure == nil && now.Before(known.Deadline) {
			if _, failure = e.act(e.life, paper.Account, paper.ID, desk.Tick{}); desk.Code(failure) == "" {
				pause = putOffBriefly // not an error of the request: perhaps the store was away for a moment
			}
		}
		if failure == nil || errors.Is(failure, store.ErrStale) || errors.Is(failure, ErrDecides) {
			continue // it was changed meanwhile, or is over: sweep lets it expire
		}
		failure = fmt.Errorf("request %s of %s: %w", paper.ID, paper.Account, failure)
		switch put := e.later(paper, now.Add(pause)); { // or it would be the first that is due again, for ever
		case put == nil:
			err = errors.Join(err, failure)
		case !errors.Is(put, store.ErrStale): // else it was changed meanwhile, or erased
			stuck.add(failure)
		}
	}
	return errors.Join(err, stuck.err())
}

// later moves the time at which a paper is due that cannot be worked on now.
func (e *Executor) later(paper store.Paper, next time.Time) error {
	change := e.again(paper)
	change.Next = next
	return e.amend(e.life, paper.Account, change)
}

// How long work on a paper is put off: a paper that cannot be read will hardly be readable soon; other errors may pass.
const (
	putOff        = 5 * time.Minute
	putOffBriefly = 5 * time.Second
)
