package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	// how often a message from a person is processed: for about two hours
	maxInboundAttempts = 15
	inboundPerPass     = 50
)

// Accept stores a message from a person. A message with the same id is stored once.
func (o *Sender) Accept(ctx context.Context, kind string, in channel.Inbound) error {
	if in.Account == "" || in.ID == "" || len(in.ID) > 200 {
		return errors.New("executor: an inbound message needs an account and an id of at most 200 characters")
	}
	now, err := o.store.Now(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(docs.Inbound{ID: in.ID, Body: in.Body, At: now})
	if err != nil {
		return err
	}
	index, err := json.Marshal(docs.InboundIndex{Channel: kind})
	if err != nil {
		return err
	}
	err = o.docs.WriteDocument(ctx, in.Account, store.DocumentChange{Kind: docs.InboundKind, ID: kind + "/" + ident.Derive("in", in.ID), Body: body, Index: index, DueAt: now})
	if errors.Is(err, store.ErrStale) {
		err = nil // it was stored before
	}
	if err == nil {
		select {
		case o.accepted <- struct{}{}:
		default:
		}
	}
	return err
}

// ReceiveLoop processes stored messages of people until ctx ends or the executor stops. Each is
// claimed, so that one of several processes handles it; after a failure it is processed again.
func (o *Sender) ReceiveLoop(ctx context.Context, handle func(ctx context.Context, kind string, in channel.Inbound) error) {
	for ctx.Err() == nil && !o.background.IsStopping() {
		due, err := o.store.DueDocuments(ctx, docs.InboundKind, inboundPerPass)
		if ctx.Err() != nil {
			return
		}
		o.background.LogRepeated("looking for messages of people", err)
		var failed background.ErrorCount
		for _, document := range due {
			if err := o.receive(ctx, document, handle); err != nil {
				failed.Add(fmt.Errorf("message %s of %s: %w", document.ID, document.Account, err))
			}
		}
		o.background.LogRepeated("message of a person not claimed", failed.Err())
		if len(due) == inboundPerPass && failed.Err() == nil {
			continue
		}
		timer := time.NewTimer(o.config.Poll)
		select {
		case <-timer.C:
		case <-o.accepted:
		case <-ctx.Done():
		case <-o.background.Stopping:
		}
		timer.Stop()
	}
}

// receive claims and processes one message.
func (o *Sender) receive(ctx context.Context, document store.Document, handle func(context.Context, string, channel.Inbound) error) error {
	var index docs.InboundIndex
	if err := json.Unmarshal(document.Index, &index); err != nil {
		return err
	}
	now, err := o.store.Now(ctx)
	if err != nil {
		return err
	}
	since := time.Now()
	index.Attempts++
	if err := o.docs.UpdateIndex(ctx, &document, index, now.Add(claimLease)); err != nil {
		if errors.Is(err, store.ErrStale) {
			return nil // another process has it
		}
		return err
	}
	var in docs.Inbound
	failure := o.docs.DecodeBody(document, &in)
	if failure == nil {
		called, cancel := context.WithTimeout(ctx, sendTimeout)
		failure = callReceiver(called, handle, index.Channel, channel.Inbound{Account: document.Account, ID: in.ID, Body: in.Body, At: in.At, Attempt: index.Attempts, Last: index.Attempts >= maxInboundAttempts})
		cancel()
	}
	next := now.Add(time.Since(since) + max(backoff(index.Attempts), channelerror.RetryAfter(failure)))
	if index.Done = failure == nil; index.Done || channelerror.IsPermanent(failure) || index.Attempts >= maxInboundAttempts {
		next = time.Time{}
	}
	if failure != nil { // its text may contain anything
		o.config.Log.Error("message of a person not processed", "account", document.Account, "channel", index.Channel, "tries", index.Attempts, "again", !next.IsZero())
	}
	settle, release := context.WithTimeout(context.WithoutCancel(ctx), background.CommitTimeout)
	defer release()
	if err := o.docs.UpdateIndex(settle, &document, index, next); !errors.Is(err, store.ErrStale) {
		return err
	}
	return nil
}

// callReceiver calls a receiver, which may panic.
func callReceiver(ctx context.Context, handle func(context.Context, string, channel.Inbound) error, kind string, in channel.Inbound) (err error) {
	defer recovery.Recover(&err)
	return handle(ctx, kind, in)
}
