package webhooks

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/webhook"
)

const (
	perPass     = 1000             // subscriptions that are looked at
	concurrent  = 16               // subscriptions that are served at once
	batch       = 100              // events that are read at once
	batchTime   = time.Minute      // how long a batch may take before its progress is saved
	claimLease  = 3 * time.Minute  // after which another process may take over a subscription
	sendTimeout = 20 * time.Second // for one message
	maxBackoff  = time.Hour        // the longest pause between two attempts
	maxPause    = 24 * time.Hour   // the longest pause that a receiver can demand
	// how long all attempts fail before a subscription is disabled
	disableAfter = 3 * 24 * time.Hour
)

// Loop sends events until the executor stops. Each subscription is claimed while it has events, so
// that one of several processes serves it.
func (s *Service) Loop() {
	slots := make(chan struct{}, concurrent)
	for !s.background.IsStopping() {
		due, err := s.store.DueDocuments(s.background.Ctx, docs.WebhookKind, perPass)
		s.background.LogRepeated("looking for webhooks", err)
		for _, document := range due {
			name := document.Account + "\x00" + document.ID
			if !s.begin(name) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-s.background.Stopping:
				return
			}
			s.background.Tasks.Go(func() {
				defer func() { <-slots; s.end(name) }()
				s.background.LogRepeated("webhook "+document.ID, s.serve(document))
			})
		}
		s.background.Sleep(s.config.Poll)
	}
}

func (s *Service) begin(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[name] {
		return false
	}
	s.busy[name] = true
	return true
}

func (s *Service) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, name)
}

// serve sends the next events to one subscription.
func (s *Service) serve(document store.Document) (err error) {
	defer recovery.Recover(&err)
	ctx := s.background.Ctx
	var one subscription
	if err := s.docs.DecodeBody(document, &one); err != nil {
		return err
	}
	events, next, err := s.store.Feed(ctx, document.Account, one.Cursor, batch)
	if errors.Is(err, store.ErrInvalid) { // the events were restored from a backup
		one.Cursor = ""
		events, next, err = s.store.Feed(ctx, document.Account, "", batch)
	}
	if err != nil || next == one.Cursor {
		return err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	one.Claims++
	claim, err := change(one, document, now.Add(claimLease))
	if err == nil {
		err = s.docs.WriteDocument(ctx, document.Account, claim)
	}
	if errors.Is(err, store.ErrStale) {
		return nil // another process serves it, or it was changed
	}
	if err != nil {
		return err
	}
	done, sent, failure := s.sendAll(ctx, one.Subscription, events)
	if done < len(events) && done > 0 {
		_, next, err = s.store.Feed(ctx, document.Account, one.Cursor, done)
	} else if done == 0 && len(events) > 0 {
		next = one.Cursor
	}
	if err != nil {
		return err
	}
	// only an error of the receiver counts as a failed attempt
	if _, ok := errors.AsType[*channel.Error](failure); !ok || ctx.Err() != nil {
		err, failure = failure, nil
	}
	return errors.Join(err, s.record(document.Account, one, next, sent, failure))
}

// sendAll sends events in order until one fails or the time of a batch is over. It returns how many
// are done, and whether any was sent.
func (s *Service) sendAll(ctx context.Context, to webhook.Subscription, events []store.Event) (done int, sent bool, err error) {
	until := time.Now().Add(batchTime)
	runs := make(map[string]store.Run)
	for i, e := range events {
		if time.Now().After(until) || s.background.IsStopping() {
			return i, sent, nil
		}
		message, ok, err := s.event(ctx, to, e, runs)
		if err != nil {
			return i, sent, err
		}
		if !ok {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, sendTimeout)
		err = s.config.Sender.Send(attempt, to, message, time.Now())
		cancel()
		if err != nil {
			return i, sent, err
		}
		sent = true
	}
	return len(events), sent, nil
}

// typeOf returns the type of an event, and whether it has one.
func typeOf(e store.Event) (string, bool) {
	switch e.Kind {
	case store.EventAsked, store.EventDecided, store.EventExpired, store.EventWithdrawn:
		return "request." + string(e.Kind), true
	case store.EventEffectBegun:
		return "effect.begun", true
	case store.EventEffectEnded:
		return "effect.ended", true
	case store.EventCreated, store.EventWaiting, store.EventParked, store.EventCompleted, store.EventFailed, store.EventCancelled, store.EventSuperseded:
		return "run." + string(e.Kind), true
	}
	return "", false
}

// event describes an event; ok is false if the subscription does not want it, or its run was
// deleted.
func (s *Service) event(ctx context.Context, to webhook.Subscription, e store.Event, runs map[string]store.Run) (message webhook.Event, ok bool, err error) {
	of, known := typeOf(e)
	if !known || e.At.Before(to.Created) || !to.Filter.SelectsType(of) {
		return message, false, nil
	}
	run, read := runs[e.Run]
	if !read {
		history, err := s.store.History(ctx, e.Account, e.Run)
		if docs.IsNotFound(err) {
			return message, false, nil
		}
		if err != nil {
			return message, false, err
		}
		run = history.Run
		runs[e.Run] = run
	}
	data := webhook.Data{Account: e.Account, Run: run.ID, StateKey: run.StateKey, Graph: run.Provider + ":" + run.Graph, Environment: s.config.Environment, Status: string(run.Status)}
	subject := run.ID
	if e.Interrupt != "" {
		card, err := s.config.Card(ctx, e.Account, e.Interrupt)
		if err != nil && !docs.IsNotFound(err) {
			return message, false, err
		}
		if err == nil {
			data.Request = webhook.NewRequest(card)
		}
		subject = e.Interrupt
	}
	message = webhook.NewEvent(e.Run+":"+strconv.FormatInt(e.Seq, 10), of, subject, s.config.BaseURL, e.At, data)
	return message, to.Filter.Selects(message), nil
}

// record ends a claim: it moves the cursor, and decides when the next attempt is made.
func (s *Service) record(account string, claimed subscription, cursor string, sent bool, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.background.Ctx), background.CommitTimeout)
	defer cancel()
	disabled := false
	err := retry.WhileStale(ctx, func() error {
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		one, document, err := s.read(ctx, account, claimed.ID)
		if docs.IsNotFound(err) || err == nil && one.Claims != claimed.Claims {
			return nil // it was removed, or another process has it
		}
		if err != nil {
			return err
		}
		one.Cursor = cursor
		if sent {
			one.LastSent, one.Failures, one.Code, one.Since, one.Next = now, 0, "", time.Time{}, time.Time{}
		}
		due := now
		if failure != nil {
			due = one.fail(failure, now)
			disabled = one.Disabled != ""
		}
		change, err := change(one, document, due)
		if err != nil {
			return err
		}
		return s.docs.WriteDocument(ctx, account, change)
	})
	if disabled && err == nil {
		s.config.Log.Error("webhook disabled", "account", account, "webhook", claimed.ID, "code", desk.NoticeFailureCode(failure))
	}
	return err
}

// fail records a failed attempt, and returns when the next one is made.
func (s *subscription) fail(failure error, now time.Time) time.Time {
	s.Failures++
	s.Code = desk.NoticeFailureCode(failure)
	if s.Since.IsZero() {
		s.Since = now
	}
	pause := min(time.Second<<min(s.Failures-1, 20), maxBackoff)
	s.Next = now.Add(max(pause, min(channelerror.RetryAfter(failure), maxPause)))
	switch {
	case webhook.IsGone(failure):
		s.Disabled = "the receiver answered 410 Gone"
	case now.Sub(s.Since) >= disableAfter:
		s.Disabled = "all attempts failed for 3 days, the last one with " + s.Code
	}
	return s.Next
}
