package decide

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// RecordPending makes the pending decision on a request effective, as the decision of its voter. It
// does nothing if the undo window has not ended, or if the vote was withdrawn. If the votes no
// longer suffice, or the policy denies the action by now, the request stays open without the vote.
func (dc *Decider) RecordPending(ctx context.Context, account, id string) error {
	err := retry.WhileStale(ctx, func() error { return dc.tryRecordPending(ctx, account, id) })
	refused, isRefused := errors.AsType[*desk.RefusedError](err)
	if bad, ok := errors.AsType[*fermata.AnswerError](err); isRefused && errors.Is(err, desk.ErrDenied) || ok {
		reason := "it is no longer possible"
		if isRefused {
			reason = refused.Detail
		} else if bad.Err != nil {
			reason = bad.Err.Error()
		}
		if text := []rune(strings.ToValidUTF8(reason, "")); len(text) > desk.MaxText {
			reason = string(text[:desk.MaxText])
		}
		_, err = dc.requests.Act(ctx, account, id, desk.Undo{From: desk.From{Actor: desk.SystemActor("executor")}, Reason: reason})
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil // the run was deleted
	}
	return err
}

func (dc *Decider) tryRecordPending(ctx context.Context, account, id string) error {
	item, err := dc.store.InboxItem(ctx, account, id)
	if err != nil {
		return err
	}
	l, err := dc.loadSnapshot(ctx, account, item.StateKey)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Open, func(i store.Interrupt) bool { return i.ID == id })
	if i < 0 {
		return nil // the run was cancelled, or another process was faster
	}
	stored, err := l.requestDoc(dc, id)
	if err != nil || stored.Pending == nil {
		return err
	}
	vote, w, err := dc.pendingSubmission(ctx, l.Open[i], stored.Request)
	if err != nil {
		return err
	}
	request := Request{
		Account: account, StateKey: item.StateKey, Actor: vote.By, Via: vote.Via, Auth: vote.Auth,
		ResumeID: ident.Derive("undo", id, vote.By, vote.At.String()), Targets: map[string]Answer{id: {}},
	}
	decision := newDecision(l.Run, request)
	meta, err := l.metaOf(ctx, dc)
	if err != nil {
		return err
	}
	tx := txn.NewDecision(l.Run, meta, l.ReadAt, request.ResumeID)
	session := dc.governor.NewSession(tx, history.New(dc.docs, l.Run))
	if err := dc.applySubmission(ctx, session, request, desk.Tick{}, &w, stored, nil, &decision); err != nil {
		return err
	}
	if err := session.AddCounters(); err != nil {
		return err
	}
	switch {
	case !w.open || tx.Writes.IsEmpty(): // decided by another process, or not due
		return nil
	case len(decision.Answers) == 0: // the votes no longer suffice
		return dc.store.CommitWrites(ctx, account, tx.Writes)
	}
	decision.Writes = tx.Writes
	receipt, err := dc.store.Decide(ctx, decision)
	if err == nil && receipt.Result != store.ResultAccepted {
		err = &RefusedError{Result: receipt.Result, Interrupt: id}
	}
	return err
}

// pendingSubmission returns the vote that completed a pending decision, and the submission that it
// was.
func (dc *Decider) pendingSubmission(ctx context.Context, i store.Interrupt, r desk.Request) (desk.Vote, submission, error) {
	w := submission{Answer: store.Answer{Interrupt: i.ID}, interrupt: i, open: true}
	var vote desk.Vote
	for _, v := range r.Votes {
		if v.By == r.Pending.By {
			vote = v
		}
	}
	if i.Kind == fermata.EffectInDoubt.Name() {
		w.value = vote.Value
		return vote, w, dc.checkAgainstLedger(ctx, &w)
	}
	if i.Kind != fermata.Approval.Name() {
		if w.value = vote.Value; vote.Verb == requirement.VerbApprove || vote.Verb == requirement.VerbReject {
			w.decision = &fermata.Decision{Verb: fermata.Verb(vote.Verb), Reason: r.Pending.Reason}
		}
		return vote, w, nil
	}
	question, err := dc.store.Data(i)
	if err != nil {
		return vote, w, err
	}
	w.approval = new(fermata.ApprovalRequest)
	w.decision = &fermata.Decision{Verb: fermata.Verb(vote.Verb), Reason: r.Pending.Reason}
	return vote, w, json.Unmarshal(question, w.approval)
}

// PendingOf returns the pending decision of the actor on one of the requests that are answered, or
// nil.
func (dc *Decider) PendingOf(ctx context.Context, l *runSnapshot, request Request) (*desk.PendingDecision, error) {
	ids := slices.Sorted(maps.Keys(request.Targets))
	if request.Value != nil {
		for _, i := range l.Open {
			ids = append(ids, i.ID)
		}
	}
	for _, id := range ids {
		stored, err := dc.docs.Request(ctx, request.Account, id)
		if docs.IsNotFound(err) || err == nil && stored == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p := stored.Pending; p != nil && p.By == request.Actor {
			return p, nil
		}
	}
	return nil, nil
}
