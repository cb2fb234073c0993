package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider"
)

const (
	clarifyTimeout = 2 * time.Minute // how long a run may take to answer
	clarifyLease   = 3 * time.Minute // after which another process tries
	// how often a message is tried; webhooks are, for three days
	maxClarifyAttempts = 10
	// the first pause between two tries; each is twice as long as the one before
	clarifyBackoff = 10 * time.Second
	// how many messages are only sent elsewhere at the same time
	maxConcurrentSends = 512
	// how many messages a process delivers at the same time, beside those that are only sent
	// elsewhere
	maxConcurrentClarifications = 32
)

// The results of a message to a run.
const (
	messageDelivered requests.DeliveryResult = "delivered"
	messageFailed    requests.DeliveryResult = "failed"
)

// runOrigin is the actor of what a run answers.
var runOrigin = desk.From{Actor: desk.Actor{ID: "agent:run", Kind: desk.ActorAgent}, Via: "run"}

// Messenger delivers messages of people to runs: questions, and that requests were withdrawn.
type Messenger struct {
	poll       time.Duration
	log        *slog.Logger
	store      *encrypted.Store
	docs       *docs.Docs
	requests   *requests.Service
	providers  *providers.Set
	background *background.Group
	// answeringNow counts the messages that are being answered here, sendingNow those that are only
	// sent elsewhere.
	answeringNow, sendingNow atomic.Int64
}

// NewMessenger returns a messenger.
func NewMessenger(poll time.Duration, log *slog.Logger, store *encrypted.Store, docs *docs.Docs, requests *requests.Service, providers *providers.Set, background *background.Group) *Messenger {
	return &Messenger{poll: poll, log: log, store: store, docs: docs, requests: requests, providers: providers, background: background}
}

// Loop delivers messages to runs until the executor is stopped.
func (m *Messenger) Loop() {
	for !m.background.IsStopping() {
		m.background.LogRepeated("looking for what runs were asked", m.deliverRunMessages())
		m.background.Sleep(m.poll)
	}
}

// deliverRunMessages delivers due messages to runs. Each is claimed by its revision, so that one of
// several processes delivers it, and delivered in the background, so that a slow run does not delay
// others. Messages that may call a model are limited.
func (m *Messenger) deliverRunMessages() error {
	due, err := m.store.DueDocuments(m.background.Ctx, docs.RunMessageKind, maxConcurrentClarifications+maxConcurrentSends)
	if err != nil || len(due) == 0 {
		return err
	}
	now, err := m.store.Now(m.background.Ctx)
	if err != nil {
		return err
	}
	for _, document := range due {
		var back requests.RunMessage
		failure := json.Unmarshal(document.Index, &back)
		places, most := &m.answeringNow, int64(maxConcurrentClarifications)
		if back.Remote {
			places, most = &m.sendingNow, maxConcurrentSends
		}
		if places.Load() >= most {
			continue // no other slot is free
		}
		back.Attempts++
		if failure == nil {
			failure = m.docs.UpdateIndex(m.background.Ctx, &document, back, now.Add(clarifyLease))
		}
		switch {
		case errors.Is(failure, store.ErrStale): // another process has it
		case failure != nil:
			err = errors.Join(err, failure)
		default:
			places.Add(1)
			m.background.Tasks.Go(func() {
				defer places.Add(-1)
				m.deliverRunMessage(document, back, now)
			})
		}
	}
	return err
}

// deliverRunMessage delivers one message, and notes what became of it.
func (m *Messenger) deliverRunMessage(document store.Document, back requests.RunMessage, now time.Time) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(m.background.Ctx, clarifyTimeout)
	defer cancel()
	var err error
	if back.Withdrawn != "" {
		err = m.deliverWithdrawal(ctx, document, back)
	} else {
		err = m.answerClarification(ctx, document.Account, back)
	}
	var next time.Time // never again
	switch {
	case err == nil:
		back.Result = messageDelivered
	case m.background.Ctx.Err() != nil:
		next = now // this process stops, and another one asks
	default:
		if back.Result = messageFailed; back.Attempts < maxClarifyAttempts && !errors.Is(err, provider.ErrPark) {
			next = now.Add(time.Since(begun) + clarifyDelay(err, back.Attempts))
		}
		m.log.Warn("message to run not delivered", "account", document.Account, "request", back.Request, "tries", back.Attempts, "again", !next.IsZero(), "why", background.ErrorClass(err))
	}
	settle, release := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer release()
	if err := m.docs.UpdateIndex(settle, &document, back, next); err != nil && !errors.Is(err, store.ErrStale) {
		m.log.Error("recording a delivery failed", "account", document.Account, "request", back.Request, "err", err)
	}
}

// clarifyDelay is how long to wait before the next try.
func clarifyDelay(err error, tries int) time.Duration {
	if later, ok := errors.AsType[*fermata.RetryError](err); ok && later.After > 0 {
		return later.After
	}
	return clarifyBackoff << (tries - 1)
}

// answerClarification lets a run answer a question, and adds the answer to the request, unless the
// question was answered or the request is over.
func (m *Messenger) answerClarification(ctx context.Context, account string, back requests.RunMessage) error {
	stored, err := m.docs.Request(ctx, account, back.Request)
	if err != nil {
		return err
	}
	if stored == nil || stored.State != desk.StateOpen || back.Number > len(stored.Clarifications) || stored.Clarifications[back.Number-1].Answer != nil {
		return nil
	}
	text, err := m.askProvider(ctx, account, back, stored.Clarifications[back.Number-1])
	if err != nil || text == "" {
		return err
	}
	_, err = m.requests.Act(ctx, account, back.Request, desk.AnswerClarification{From: runOrigin, Number: back.Number, Answer: text})
	if _, over := errors.AsType[*desk.ClosedError](err); over || errors.Is(err, desk.ErrNoClarification) {
		return nil // answered or decided in the meantime
	}
	return err
}

// askProvider returns the run's reply, or "". It does not change the run, which waits because the
// request is open.
func (m *Messenger) askProvider(ctx context.Context, account string, back requests.RunMessage, question desk.Clarification) (text string, err error) {
	defer recovery.Recover(&err)
	item, err := m.store.InboxItem(ctx, account, back.Request)
	if err != nil {
		return "", err
	}
	run, err := m.store.Get(ctx, account, item.StateKey)
	if err != nil || run.ID != item.Run {
		return "", err
	}
	p, err := m.providers.Of(run)
	if err != nil {
		return "", err
	}
	explainer, hears := p.(provider.Explainer)
	if !hears {
		return "", nil
	}
	named, err := m.providers.RunView(run, m.store)
	if err != nil {
		return "", err
	}
	about := provider.Clarification{
		InterruptID: ids.ProviderID(item.ID), Envelope: fermata.Envelope{Kind: item.Kind},
		Number: back.Number, Text: question.Text, By: question.By, At: question.At, Attempt: back.Attempts - 1,
	}
	if about.Data, err = m.store.Data(item.Interrupt); err != nil {
		return "", err
	}
	if about.Input, err = m.store.Input(run); err != nil {
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
