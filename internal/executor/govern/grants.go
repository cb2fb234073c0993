package govern

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/store"
)

// Grant is a remembered approval, and how far it is used up.
type Grant struct {
	grant.Grant
	Usage grant.Usage `json:"usage"`
	// Wish is the digest of what was wanted, if that had a key: see GrantRequest.Idempotency.
	RequestDigest string `json:"wish,omitempty"`
	revision      int64
}

// AddGrant adds a grant to the unit of work.
func (gv *Governor) AddGrant(c *txn.Tx, g *Grant) error {
	body, err := json.Marshal(g)
	if err == nil {
		c.Documents = append(c.Documents, store.DocumentChange{Kind: docs.GrantKind, ID: g.ID, BaseRevision: g.revision, Body: body})
	}
	return err
}

// ListGrants lists what is remembered in an account, also what has ended.
func (gv *Governor) ListGrants(ctx context.Context, account string) ([]Grant, error) {
	var all []Grant
	for document, err := range gv.docs.Documents(ctx, account, docs.GrantKind, store.DocumentFilter{Limit: docs.DocumentsPerPage}) {
		if err != nil {
			return nil, err
		}
		if document.Body == nil {
			continue // it was erased
		}
		g, err := gv.DecodeGrant(document)
		if err != nil { // it allows nothing then; the others still do
			gv.config.Log.Error("grant is unreadable", "account", document.Account, "grant", document.ID, "err", err)
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

// DecodeGrant decodes the document of a grant.
func (gv *Governor) DecodeGrant(document store.Document) (Grant, error) {
	g := Grant{revision: document.Revision}
	err := gv.docs.DecodeBody(document, &g)
	return g, err
}

// RevokeGrant takes a grant back: the next time, people are asked again. It returns
// store.ErrNotFound if there is none.
func (gv *Governor) RevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	return retry.WhileStale(ctx, func() error { return gv.tryRevokeGrant(ctx, account, id, by) })
}

func (gv *Governor) tryRevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	document, err := gv.store.Document(ctx, account, docs.GrantKind, id)
	if err == nil && document.Body == nil {
		err = store.ErrNotFound // it was erased
	}
	if err != nil {
		return err
	}
	g, err := gv.DecodeGrant(document)
	if err != nil || !g.Revoked.IsZero() {
		return err
	}
	now, err := gv.store.Now(ctx)
	if err != nil {
		return err
	}
	c := txn.New(store.Run{Account: account}, docs.RunMeta{}, now)
	g.Grant = g.Grant.Revoke(now)
	if err := errors.Join(c.AddAudit(auditrec.AuditActor(by), audit.Location{}, audit.GrantRevoked{Grant: id}), gv.AddGrant(c, &g)); err != nil {
		return err
	}
	return gv.store.CommitWrites(ctx, account, c.Writes)
}

// applyGrant turns the verdict "ask" into "allow" if a grant covers the action. digest is the
// digest of the action. The use of the grant is written with the ruling, and so counted before the
// action is executed: after a crash in between, the action finds its own use in its receipt.
func (s *Session) applyGrant(ctx context.Context, key string, in policy.Input, decision policy.Decision, digest string) (policy.Decision, error) {
	if decision.Verdict != policy.Ask {
		return decision, nil
	}
	all, err := s.governor.ListGrants(ctx, s.Tx.Run.Account)
	if err != nil || len(all) == 0 {
		return decision, err
	}
	bill, err := s.receiptFor(ctx, key)
	if err != nil {
		return decision, err
	}
	// its own first, or it would use another one, too
	slices.SortStableFunc(all, func(a, b Grant) int {
		return cmp.Compare(bill.uses(b), bill.uses(a))
	})
	for _, g := range all {
		//mutate:grant-usage-not-counted-twice
		before := grant.Usage{Uses: g.Usage.Uses - bill.uses(g), Amount: g.Usage.Amount - bill.spentOn(g)}
		use, err := g.Match(in, decision, before, in.At)
		if err != nil {
			continue // it does not cover the action
		}
		line := audit.GrantUsed{
			Grant: g.ID, Action: audit.Action{Name: truncateForAudit(in.Tool), Args: s.Tx.Digest(digest)}, Ruling: audit.Ruling{Digest: decision.Policy, Rules: decision.Rules, Grant: g.ID},
		}
		if bill.uses(g) == 0 {
			g.Usage.Uses, g.Usage.Amount = g.Usage.Uses+1, g.Usage.Amount+use.Amount
			bill.Grant, bill.Spent, bill.changed = g.ID, use.Amount, true
			err = s.Tx.AddAudit(auditrec.SystemActor, s.Tx.AuditPlace(), line)
		}
		decision.Verdict, decision.Grant, decision.Requirement = policy.Allow, g.ID, nil
		// also one that is used again: it may be revoked at this moment
		return decision, errors.Join(err, s.governor.AddGrant(s.Tx, &g))
	}
	return decision, nil
}
