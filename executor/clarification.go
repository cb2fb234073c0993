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
	"github.com/fermata-go/fermata/executor/internal/background"
	"github.com/fermata-go/fermata/executor/internal/ids"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// runMessageKind is a message to a run that is still to be delivered: a question that somebody asked back, or that a request was withdrawn.
const runMessageKind store.DocumentKind = "back"

const (
	clarifyTimeout              = 2 * time.Minute  // how long a run may take to answer
	clarifyLease                = 3 * time.Minute  // after which another process tries
	maxClarifyAttempts          = 10               // how often a message is tried; webhooks are, for three days
	clarifyBackoff              = 10 * time.Second // the first pause between two tries; each is twice as long as the one before
	maxConcurrentSends          = 512              // how many messages are only sent elsewhere at the same time
	maxConcurrentClarifications = 32               // how many messages a process delivers at the same time, beside those that are only sent elsewhere
)

// runOrigin is the actor of what a run answers.
var runOrigin = desk.From{Actor: desk.Actor{ID: "agent:run", Kind: desk.ActorAgent}, Via: "run"}

// runMessage says which question of which request it is, and how often it was tried.
type runMessage struct {
	deliveryIndex
	Request string `json:"request"`
	Number  int    `json:"number,omitempty"`
	// Why is set, in the place of the number, if the request was withdrawn because the run was ended.
	Withdrawn string `json:"why,omitempty"`
	// Calls says that the provider only has to send it to somebody elsewhere: see [provider.Capabilities].
	Remote bool `json:"calls,omitempty"`
}

// askBack files the questions to a run that a change of a request brings, if the run's provider can answer them. The requester is notified as well, and
// may answer instead.
func (e *Executor) addClarifications(c *unitOfWork, change desk.Change) error {
	p, err := e.providerOf(c.run)
	if _, hears := p.(provider.Explainer); err != nil || !hears {
		return nil
	}
	for _, event := range change.Events {
		if event.Type != desk.EventClarificationAsked {
			continue
		}
		back := runMessage{Request: change.Request.ID, Number: len(change.Request.Clarifications), Remote: p.Capabilities().Remote}
		id := fmt.Sprintf("%s/%d", change.Request.IncidentKey(), back.Number) // a request that is made anew counts from one again
		if err := c.addIndexed(store.DocumentChange{Kind: runMessageKind, ID: id, Run: c.run.ID, DueAt: c.now}, back); err != nil {
			return err
		}
	}
	return nil
}

// runMessageLoop delivers messages to runs until the executor is stopped.
func (e *Executor) runMessageLoop() {
	for !e.background.IsStopping() {
		e.background.LogRepeated("looking for what runs were asked", e.deliverRunMessages())
		e.background.Sleep(e.config.Poll)
	}
}

// explain delivers the messages to runs that are due. Each is claimed by its revision, so that one of several processes delivers it, and delivered in
// the background, so that a slow run holds up nobody. Of those that may call a model, there are few at the same time.
func (e *Executor) deliverRunMessages() error {
	due, err := e.store.DueDocuments(e.background.Ctx, runMessageKind, maxConcurrentClarifications+maxConcurrentSends)
	if err != nil || len(due) == 0 {
		return err
	}
	now, err := e.store.Now(e.background.Ctx)
	if err != nil {
		return err
	}
	for _, paper := range due {
		var back runMessage
		failure := json.Unmarshal(paper.Index, &back)
		places, most := &e.answeringNow, int64(maxConcurrentClarifications)
		if back.Remote {
			places, most = &e.sendingNow, maxConcurrentSends
		}
		if places.Load() >= most {
			continue // nobody else takes one
		}
		back.Attempts++
		if failure == nil {
			failure = e.updateIndex(e.background.Ctx, &paper, back, now.Add(clarifyLease))
		}
		switch {
		case errors.Is(failure, store.ErrStale): // another process has it
		case failure != nil:
			err = errors.Join(err, failure)
		default:
			places.Add(1)
			e.background.Tasks.Go(func() {
				defer places.Add(-1)
				e.deliverRunMessage(paper, back, now)
			})
		}
	}
	return err
}

// explainOne delivers one message, and notes what became of it.
func (e *Executor) deliverRunMessage(paper store.Document, back runMessage, now time.Time) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(e.background.Ctx, clarifyTimeout)
	defer cancel()
	var err error
	if back.Withdrawn != "" {
		err = e.deliverWithdrawal(ctx, paper, back)
	} else {
		err = e.answerClarification(ctx, paper.Account, back)
	}
	var next time.Time // never again
	switch {
	case err == nil:
		back.Result = delivered
	case e.background.Ctx.Err() != nil:
		next = now // this process stops, and another one asks
	default:
		if back.Result = deliveryFailed; back.Attempts < maxClarifyAttempts && !errors.Is(err, provider.ErrPark) {
			next = now.Add(time.Since(begun) + clarifyDelay(err, back.Attempts))
		}
		e.config.Log.Warn("a run did not hear what it had to be told", "account", paper.Account, "request", back.Request, "tries", back.Attempts, "again", !next.IsZero(), "why", background.ErrorClass(err))
	}
	settle, release := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer release()
	if err := e.updateIndex(settle, &paper, back, next); err != nil && !errors.Is(err, store.ErrStale) {
		e.config.Log.Error("noting what became of what a run was asked", "account", paper.Account, "request", back.Request, "err", err)
	}
}

// clarifyDelay is how long to wait before the next try.
func clarifyDelay(err error, tries int) time.Duration {
	if later, ok := errors.AsType[*provider.RetryError](err); ok {
		return later.After
	}
	return clarifyBackoff << (tries - 1)
}

// answerBack lets a run answer a question, and adds the answer to the request, unless the question was answered or the request is over.
func (e *Executor) answerClarification(ctx context.Context, account string, back runMessage) error {
	known, err := e.requestDoc(ctx, account, back.Request)
	if err != nil {
		return err
	}
	if known == nil || known.State != desk.StateOpen || back.Number > len(known.Clarifications) || known.Clarifications[back.Number-1].Answer != nil {
		return nil
	}
	text, err := e.askProvider(ctx, account, back, known.Clarifications[back.Number-1])
	if err != nil || text == "" {
		return err
	}
	_, err = e.Act(ctx, account, back.Request, desk.AnswerClarification{From: runOrigin, Number: back.Number, Answer: text})
	if _, over := errors.AsType[*desk.ClosedError](err); over || errors.Is(err, desk.ErrNoClarification) {
		return nil // answered or decided meanwhile
	}
	return err
}

// explained is what the run answers; "" if nothing. Nothing of the run changes by that: it waits, because the request is open.
func (e *Executor) askProvider(ctx context.Context, account string, back runMessage, question desk.Clarification) (text string, err error) {
	defer recovery.Recover(&err)
	asked, err := e.store.InboxItem(ctx, account, back.Request)
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
	named, err := e.providerRun(run, e.store)
	if err != nil {
		return "", err
	}
	about := provider.Clarification{
		InterruptID: ids.ProviderID(asked.ID), Envelope: fermata.Envelope{Kind: asked.Kind},
		Number: back.Number, Text: question.Text, By: question.By, At: question.At, Attempt: back.Attempts - 1,
	}
	if about.Data, err = e.store.Data(asked.Interrupt); err != nil {
		return "", err
	}
	if about.Input, err = e.store.Input(run); err != nil {
		return "", err
	}
	text, err = explainer.Explain(ctx, named, about)
	return truncate(strings.ToValidUTF8(strings.TrimSpace(text), "�"), desk.MaxText), err
}

// truncate cuts a text to so many characters.
func truncate(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
