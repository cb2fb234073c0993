package admin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// AuditBundle returns the evidence of a request: the records about it with their proofs, the texts
// that people saw, and what the digests in the records stand for. A caller who may not see the
// request gets the records only. The salt of a run opens all of its digests, so there are no values
// if the run has sensitive data. It returns audit.ErrNotFound if the log has no such records.
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
	salt := txn.AuditSalt(meta)
	for _, screen := range bundle.Screens() {
		text, err := ad.docs.RenderedText(ctx, bundle.Account, bundle.Request, screen.Sum)
		if err != nil {
			return err
		}
		bundle.AddText(text, salt.Derive(audit.ScreenPurpose))
	}
	restricted, err := ad.hasRestrictedData(ctx, store.Run{Account: bundle.Account, ID: asked.Run})
	if err != nil {
		return err
	}
	if restricted {
		bundle.Withheld = evidence.WithheldSensitive
		return nil
	}
	return ad.addValues(ctx, bundle, asked, known.Request, salt)
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
func (ad *Admin) addValues(ctx context.Context, bundle *evidence.Bundle, asked store.InboxItem, request desk.Request, salt audit.Salt) error {
	view, err := ad.docs.ToRequestView(asked)
	if err != nil {
		return err
	}
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
	paper, err := ad.store.Document(ctx, bundle.Account, docs.ReceiptKind, asked.Run)
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
