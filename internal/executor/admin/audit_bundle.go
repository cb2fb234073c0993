package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// AuditBundle returns the evidence of a request: the records about it with their proofs, the texts
// that people saw, and the values whose digests the records have. A caller who may not see the
// request gets the records only. The salt of a run opens all of its digests, also later ones, so
// there are no values if the run has sensitive data or may still go on. It returns
// audit.ErrNotFound if the log has no such records.
func (ad *Admin) AuditBundle(ctx context.Context, account, request string, maySee func(desk.Request) (bool, error)) (evidence.Bundle, error) {
	lines, err := ad.AuditAbout(ctx, account, request)
	if err == nil && len(lines) == 0 {
		err = audit.ErrNotFound
	}
	if err != nil {
		return evidence.Bundle{}, err
	}
	log := audit.NewStoreLog(ad.store)
	public := ""
	if key := ad.config.Audit.Key; key != nil {
		head, err := log.Head(ctx, account)
		if err == nil {
			public, err = key.Verifier(head.Origin())
		}
		if err != nil {
			return evidence.Bundle{}, err
		}
	}
	now, err := ad.store.Now(ctx)
	if err != nil {
		return evidence.Bundle{}, err
	}
	bundle, err := evidence.New(ctx, log, account, request, lines, public, audit.TimestampOf(now))
	if err != nil {
		return bundle, err
	}
	return bundle, ad.addContent(ctx, &bundle, maySee)
}

// addContent adds the texts and values that the caller may see.
func (ad *Admin) addContent(ctx context.Context, bundle *evidence.Bundle, maySee func(desk.Request) (bool, error)) error {
	asked, err := ad.store.InboxItem(ctx, bundle.Account, bundle.Request)
	if errors.Is(err, store.ErrNotFound) || err == nil && asked.Request == nil {
		bundle.Withheld = evidence.WithheldErased
		return nil
	}
	if err != nil {
		return err
	}
	known, err := ad.docs.DecodeRequest(*asked.Request)
	if err != nil {
		return err
	}
	visible, err := maySee(known.Request)
	if err != nil {
		return err
	}
	if !visible {
		bundle.Withheld = evidence.WithheldHidden
		return nil
	}
	meta, err := ad.docs.MetaOf(ctx, bundle.Account, asked.Run)
	if err != nil {
		return err
	}
	view, err := ad.docs.ToRequestView(asked)
	if err != nil {
		return err
	}
	sensitive := known.Request.SensitiveTexts(view.Data)
	for _, screen := range bundle.Screens() {
		text, err := ad.docs.RenderedText(ctx, bundle.Account, bundle.Request, screen.Sum)
		if err != nil {
			return err
		}
		// a value may have become sensitive after a person saw it
		if slices.ContainsFunc(sensitive, func(value string) bool { return strings.Contains(text, value) }) {
			bundle.TextsWithheld++
			continue
		}
		bundle.AddText(text, txn.ScreenSalt(meta, bundle.Request))
	}
	// Before the requests are read: a run that has ended gets no others.
	goesOn, err := ad.mayGoOn(ctx, bundle.Account, asked)
	if err != nil {
		return err
	}
	restricted, err := ad.hasRestrictedData(ctx, store.Run{Account: bundle.Account, ID: asked.Run})
	switch {
	case err != nil:
		return err
	case restricted:
		bundle.Withheld = evidence.WithheldSensitive
		return nil
	case goesOn:
		bundle.Withheld = evidence.WithheldRunning
		return nil
	}
	return ad.addValues(ctx, bundle, view, txn.AuditSalt(meta))
}

// mayGoOn reports whether the run of a request has not ended, or can be retried.
func (ad *Admin) mayGoOn(ctx context.Context, account string, asked store.InboxItem) (bool, error) {
	run, err := ad.docs.FindRun(ctx, account, asked.StateKey)
	if errors.Is(err, errs.ErrRunNotFound) || err == nil && run.ID != asked.Run {
		return false, nil // only the newest run of a state key can be active, or retried
	}
	if err != nil || run.Status != store.StatusFailed {
		return run.Status.Active(), err
	}
	problem, _, err := ad.docs.Problem(ctx, account, run.ID)
	return problem.Code != "" && !problem.Final, err
}

// hasRestrictedData reports whether a request of a run has values that are masked, or is visible to
// some people only.
func (ad *Admin) hasRestrictedData(ctx context.Context, run store.Run) (bool, error) {
	all, err := history.New(ad.docs, run).AllRequests(ctx)
	for _, r := range all {
		if len(r.Requirement.Sensitive) > 0 || len(r.Requirement.VisibleTo) > 0 {
			return true, err
		}
	}
	return false, err
}

// addValues adds the arguments, the answers, and what people wrote.
func (ad *Admin) addValues(ctx context.Context, bundle *evidence.Bundle, view docs.RequestView, salt audit.Salt) error {
	request := view.Request
	var approval fermata.ApprovalRequest
	if json.Unmarshal(view.Data, &approval) == nil {
		bundle.AddValue(evidence.ValueArguments, string(approval.Args), salt)
	}
	if request.Edit != nil {
		bundle.AddValue(evidence.ValueEdited, string(request.Edit.Args), salt)
	}
	for _, vote := range request.Votes {
		bundle.AddValue(evidence.ValueAnswer, string(vote.Value), salt)
	}
	for _, event := range request.Log {
		bundle.AddValue(evidence.ValueReason, event.Detail["reason"], salt)
	}
	for _, comment := range request.Comments {
		bundle.AddValue(evidence.ValueText, comment.Text, salt)
	}
	for _, question := range request.Clarifications {
		bundle.AddValue(evidence.ValueReason, question.Text, salt)
		if question.Answer != nil {
			bundle.AddValue(evidence.ValueText, question.Answer.Text, salt)
		}
	}
	paper, err := ad.store.Document(ctx, bundle.Account, docs.ReceiptKind, view.Run)
	if docs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	receipt, err := ad.docs.DecodeReceipt([]store.Document{paper})
	if err == nil {
		bundle.AddValue(evidence.ValueResult, string(receipt.Result), salt)
	}
	return err
}

// AuditTrail returns what the log says about the actions of a run: its id, its state key, or one of
// its requests. It reads the whole log.
func (ad *Admin) AuditTrail(ctx context.Context, account, run string) ([]audit.Trail, error) {
	return audit.Trails(audit.RecordsAbout(ctx, audit.NewStoreLog(ad.store), account, run))
}
