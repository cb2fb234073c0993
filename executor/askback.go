package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// backPaper is a message to a run that is still to be delivered: a question that somebody asked back, or that a request was withdrawn.
const backPaper store.PaperKind = "back"

const (
	explainTimeout = 2 * time.Minute  // how long a run may take to answer
	explainLease   = 3 * time.Minute  // after which another process tries
	explainTries   = 10               // how often a message is tried; webhooks are, for three days
	explainPause   = 10 * time.Second // the first pause between two tries; each is twice as long as the one before
	explainAtOnce  = 32               // how many messages a process delivers at the same time, beside those that are only sent elsewhere
)

// theRun is the actor of what a run answers.
var theRun = desk.From{Actor: desk.Actor{ID: "agent:run", Kind: desk.Agent}, Via: "run"}

// backFacts says which question of which request it is, and how often it was tried.
type backFacts struct {
	delivery
	Request string `json:"request"`
	Number  int    `json:"number,omitempty"`
	// Why is set, in the place of the number, if the request was withdrawn because the run was ended.
	Why string `json:"why,omitempty"`
	// Calls says that the provider only has to send it to somebody elsewhere: see [provider.Capabilities].
	Calls bool `json:"calls,omitempty"`
}

// askBack files the questions to a run that a change of a request brings, if the run's provider can answer them. The requester is notified as well, and
// may answer instead.
func (e *Executor) askBack(c *filing, change desk.Change) error {
	p, err := e.providerOf(c.run)
	if _, hears := p.(provider.Explainer); err != nil || !hears {
		return nil
	}
	for _, event := range change.Facts {
		if event.What != desk.WasQuestion {
			continue
		}
		back := backFacts{Request: change.Request.ID, Number: len(change.Request.Questions), Calls: p.Capabilities().Calls}
		id := fmt.Sprintf("%s/%d", change.Request.Incident(), back.Number) // a request that is made anew counts from one again
		if err := c.fileFacts(store.PaperChange{Kind: backPaper, ID: id, Run: c.run.ID, Next: c.now}, back); err != nil {
			return err
		}
	}
	return nil
}

// explain delivers the messages to runs that are due. Each is claimed by its revision, so that one of several processes delivers it, and delivered in
// the background, so that a slow run holds up nobody. Of those that may call a model, there are few at the same time.
func (e *Executor) explain() error {
	due, err := e.store.Due(e.life, backPaper, explainAtOnce+callsAtOnce)
	if err != nil || len(due) == 0 {
		return err
	}
	now, err := e.store.Now(e.life)
	if err != nil {
		return err
	}
	for _, paper := range due {
		var back backFacts
		failure := json.Unmarshal(paper.Facts, &back)
		places, most := &e.explaining, int64(explainAtOnce)
		if back.Calls {
			places, most = &e.sending, callsAtOnce
		}
		if places.Load() >= most {
			continue // nobody else takes one
		}
		back.Tries++
		if failure == nil {
			failure = e.note(e.life, &paper, back, now.Add(explainLease))
		}
		switch {
		case errors.Is(failure, store.ErrStale): // another process has it
		case failure != nil:
			err = errors.Join(err, failure)
		default:
			places.Add(1)
			e.work.Go(func() {
				defer places.Add(-1)
				e.explainOne(paper, back, now)
			})
		}
	}
	return err
}

// explainOne delivers one message, and notes what became of it.
func (e *Executor) explainOne(paper store.Paper, back backFacts, now time.Time) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(e.life, explainTimeout)
	defer cancel()
	var err error
	if back.Why != "" {
		err = e.tellGone(ctx, paper, back)
	} else {
		err = e.answerBack(ctx, paper.Account, back)
	}
	var next time.Time // never again
	switch {
	case err == nil:
		back.Result = told
	case e.life.Err() != nil:
		next = now // this process stops, and another one asks
	default:
		if back.Result = failedToTell; back.Tries < explainTries && !errors.Is(err, provider.ErrGiveUp) {
			next = now.Add(time.Since(begun) + pauseAfter(err, back.Tries))
		}
		e.config.Log.Warn("a run did not hear what it had to be told", "account", paper.Account, "request", back.Request, "tries", back.Tries, "again", !next.IsZero(), "why", className(err))
	}
	settle, release := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer release()
	if err := e.note(settle, &paper, back, next); err != nil && !errors.Is(err, store.ErrStale) {
		e.config.Log.Error("noting what became of what a run was asked", "account", paper.Account, "request", back.Request, "err", err)
	}
}

// pauseAfter is how long to wait before the next try.
func pauseAfter(err error, tries int) time.Duration {
	if later, ok := errors.AsType[*provider.RetryError](err); ok {
		return later.After
	}
	return explainPause << (tries - 1)
}

// answerBack lets a run answer a question, and adds the answer to the request, unless the question was answered or the request is over.
func (e *Executor) answerBack(ctx context.Context, account string, back backFacts) error {
	known, err := e.requestOf(ctx, account, back.Request)
	if err != nil {
		return err
	}
	if known == nil || known.State != desk.Open || back.Number > len(known.Questions) || known.Questions[back.Number-1].Answer != nil {
		return nil
	}
	text, err := e.explained(ctx, account, back, known.Questions[back.Number-1])
	if err != nil || text == "" {
		return err
	}
	_, err = e.Act(ctx, account, back.Request, desk.AnswerBack{From: theRun, Question: back.Number, Answer: text})
	if _, over := errors.AsType[*desk.OverError](err); over || errors.Is(err, desk.ErrNoQuestion) {
		return nil // answered or decided meanwhile
	}
	return err
}

// explained is what the run answers; "" if nothing. Nothing of the run changes by that: it waits, because the request is open.
func (e *Executor) explained(ctx context.Context, account string, back backFacts, question desk.Question) (text string, err error) {
	defer safely.Recover(&err)
	asked, err := e.store.Question(ctx, account, back.Request)
	if err != nil {
		return "", err
	}
	run, err := e.store.Get(ctx, account, asked.StateKey)
	if err != nil || run.ID != asked.Run {
		return "", err
	}
	p, err := e.providerOf(run)
	if err != nil {
		return "", err
	}
	explainer, hears := p.(provider.Explainer)
	if !hears {
		return "", nil
	}
	named, err := e.runOf(run, e.stateOf())
	if err != nil {
		return "", err
	}
	about := provider.Back{
		Interrupt: questionID(asked.ID), Envelope: fermata.Envelope{Kind: asked.Kind},
		Number: back.Number, Text: question.Text, By: question.By, At: question.At, Attempt: back.Tries - 1,
	}
	if about.Data, err = e.open(account, store.SealedData, asked.ID, asked.Data); err != nil {
		return "", err
	}
	if about.Input, err = e.open(account, store.SealedInput, run.ID, run.Input); err != nil {
		return "", err
	}
	text, err = explainer.Explain(ctx, named, about)
	return shortened(strings.ToValidUTF8(strings.TrimSpace(text), "�"), desk.MaxText), err
}

// shortened cuts a text to so many characters.
func shortened(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
