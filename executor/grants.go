package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor/internal/errs"
	"github.com/fermata-go/fermata/executor/internal/retry"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// grantKind is an approval that is remembered within bounds.
const grantKind store.DocumentKind = "grant"

// Grant is a remembered approval, and how far it is used up.
type Grant struct {
	grant.Grant
	Usage grant.Usage `json:"usage"`
	// Wish is the digest of what was wanted, if that had a key: see GrantRequest.Idempotency.
	RequestDigest string `json:"wish,omitempty"`
	revision      int64
}

// GrantRequest says how an approval is remembered. The rules by which people were asked may allow less, or nothing.
type GrantRequest struct {
	// By is who wants it remembered: somebody who approved it, and may still decide. Auth is how strongly they were authenticated, Via the channel.
	By, Via string
	Auth    desk.Auth
	TTL     time.Duration
	MaxUses int
	Budget  *grant.Budget
	// Relax lets single arguments differ, by their JSON pointers. All others have to be the same.
	Relax map[string]grant.Constraint
	// Once, if it has a key, lets it be wanted again by who has no answer: one grant is made of it.
	Idempotency desk.IdempotencyKey
}

// grantID is the id of the grant that is made of a request. Under a key it is always the same.
func grantID(request string, r GrantRequest) string {
	if r.Idempotency.Key == "" { //mutate:grant-idempotent
		return ident.Random("grt")
	}
	return ident.Derive("grt", request, r.By, r.Idempotency.Key)
}

// GrantRequest makes a grant of a request that was approved: the same action with the same arguments, at the same place and for the same requester,
// is allowed for a while without asking again. It returns ErrInvalid if the rules do not let it be remembered, or it was not approved by
// whoever wants it, and desk.ErrKeyReused if its key was used for something else.
func (e *Executor) CreateGrant(ctx context.Context, account, request string, r GrantRequest) (g Grant, err error) {
	err = retry.WhileStale(ctx, func() (err error) {
		g, err = e.tryCreateGrant(ctx, account, request, r)
		return err
	})
	return g, err
}

func (e *Executor) tryCreateGrant(ctx context.Context, account, request string, r GrantRequest) (Grant, error) {
	asked, err := e.store.InboxItem(ctx, account, request)
	if err != nil {
		return Grant{}, err
	}
	question, err := e.toRequestView(asked)
	if err != nil {
		return Grant{}, err
	}
	if question.Request == nil {
		return Grant{}, store.ErrNotFound
	}
	doc := *question.Request
	from := desk.From{Actor: desk.PersonActor(r.By, r.Auth), Via: r.Via}
	if doc.Decision == nil || doc.Decision.Outcome != desk.OutcomeApproved || !slices.Contains(doc.Decision.By, r.By) {
		err := fmt.Errorf("%w: %s has not approved it", errs.ErrInvalid, r.By)
		return Grant{}, cmp.Or(e.recordRefusedAct(ctx, question.InboxItem, ActCreateGrant, from, audit.RefusedNotAllowed), err)
	}
	if r.Idempotency.Key != "" {
		if known, err := e.existingGrant(ctx, account, request, r); !isNotFound(err) {
			return known, err
		}
	}
	c, err := e.workFor(ctx, question.InboxItem)
	if err != nil {
		return Grant{}, err
	}
	made, err := e.narrowestGrant(ctx, c, question, doc, r)
	if err != nil {
		return Grant{}, e.recordIfRefused(ctx, question.InboxItem, ActCreateGrant, from, fmt.Errorf("%w: %w", errs.ErrInvalid, err))
	}
	g := Grant{Grant: made, RequestDigest: r.Idempotency.Digest}
	scope, err := json.Marshal(made)
	if err != nil {
		return Grant{}, err
	}
	line := audit.GrantMade{Grant: g.ID, Scope: c.digest(string(scope)), Until: audit.TimestampOf(g.NotAfter), Uses: int64(g.MaxUses)}
	if err := c.addAudit(auditActor(from), c.requestPlace(question.ID), line); err != nil {
		return Grant{}, err
	}
	if err := e.addGrant(c, &g); err != nil {
		return Grant{}, err
	}
	//mutate:grant-locks-request
	c.Documents = append(c.Documents, e.unchanged(*asked.Request)) // or the account may be erased by now, and nobody would ever delete the grant
	return g, e.store.CommitWrites(ctx, account, c.Writes)
}

// remembered is the grant that was made under the same key.
func (e *Executor) existingGrant(ctx context.Context, account, request string, r GrantRequest) (g Grant, err error) {
	paper, err := e.store.Document(ctx, account, grantKind, grantID(request, r))
	if err == nil {
		g, err = e.decodeGrant(paper)
	}
	if err == nil && g.RequestDigest != r.Idempotency.Digest {
		return Grant{}, desk.ErrKeyReused
	}
	return g, err
}

// mayRemember refuses a grant if the request, or the rules as they are today, need several people, or the person could not decide it today.
func (e *Executor) checkGrantable(doc desk.Request, today policy.Decision, r GrantRequest) error {
	if today.Requirement != nil {
		doc.Requirement = doc.Requirement.Merge(deskRequirement(*today.Requirement))
	}
	people := 0
	for _, g := range doc.Requirement.Groups {
		people += max(1, g.Count)
	}
	switch {
	case people > 1:
		return fmt.Errorf("it needs %d people each time", people)
	case !r.Auth.AtLeast(doc.Requirement.MinAuth):
		return desk.ErrWeakAuth
	}
	return e.MayDecide(doc, r.By)
}

// narrowest makes the narrowest grant for the arguments as they were approved, and relaxes it as asked.
func (e *Executor) narrowestGrant(ctx context.Context, c *unitOfWork, question RequestView, doc desk.Request, r GrantRequest) (grant.Grant, error) {
	var asked fermata.ApprovalRequest
	if err := json.Unmarshal(question.Data, &asked); err != nil {
		return grant.Grant{}, err
	}
	args := asked.Args
	if doc.Decision.Args != nil {
		args = doc.Decision.Args
	}
	address, err := fermata.ParseAddress(question.Address)
	if err != nil {
		return grant.Grant{}, err
	}
	j, err := e.newSession(c, newHistory(e, c.run)).evaluate(ctx, "", address, asked.Action, args)
	if err == nil {
		err = e.checkGrantable(doc, j.Decision, r)
	}
	if err != nil {
		return grant.Grant{}, err
	}
	made, err := grant.Narrowest(j.ratedInput, j.Decision, grant.Terms{
		ID: grantID(question.ID, r), By: r.By, Request: question.ID, Now: c.now, ApprovedAt: doc.Decision.At, TTL: r.TTL, MaxUses: r.MaxUses, Budget: r.Budget,
	})
	for pointer, constraint := range r.Relax {
		if err == nil {
			made, err = made.Relax(pointer, constraint)
		}
	}
	return made, err
}

// keepGrant files a grant as it is now.
func (e *Executor) addGrant(c *unitOfWork, g *Grant) error {
	body, err := json.Marshal(g)
	if err == nil {
		c.Documents = append(c.Documents, store.DocumentChange{Kind: grantKind, ID: g.ID, BaseRevision: g.revision, Body: body})
	}
	return err
}

// Grants lists what is remembered in an account, also what has ended.
func (e *Executor) ListGrants(ctx context.Context, account string) ([]Grant, error) {
	var all []Grant
	for paper, err := range e.documents(ctx, account, grantKind, store.DocumentFilter{Limit: documentsPerPage}) {
		if err != nil {
			return nil, err
		}
		if paper.Body == nil {
			continue // it was erased
		}
		g, err := e.decodeGrant(paper)
		if err != nil { // it allows nothing then; the others still do
			e.config.Log.Error("a grant that cannot be read", "account", paper.Account, "grant", paper.ID, "err", err)
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

func (e *Executor) decodeGrant(paper store.Document) (Grant, error) {
	g := Grant{revision: paper.Revision}
	err := e.decodeBody(paper, &g)
	return g, err
}

// Revoke takes a grant back: the next time, people are asked again. It returns store.ErrNotFound if there is none.
func (e *Executor) RevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	return retry.WhileStale(ctx, func() error { return e.tryRevokeGrant(ctx, account, id, by) })
}

func (e *Executor) tryRevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	paper, err := e.store.Document(ctx, account, grantKind, id)
	if err == nil && paper.Body == nil {
		err = store.ErrNotFound // it was erased
	}
	if err != nil {
		return err
	}
	g, err := e.decodeGrant(paper)
	if err != nil || !g.Revoked.IsZero() {
		return err
	}
	now, err := e.store.Now(ctx)
	if err != nil {
		return err
	}
	c := newTx(store.Run{Account: account}, runMeta{}, now)
	g.Grant = g.Grant.Revoke(now)
	if err := errors.Join(c.addAudit(auditActor(by), audit.Location{}, audit.GrantRevoked{Grant: id}), e.addGrant(c, &g)); err != nil {
		return err
	}
	return e.store.CommitWrites(ctx, account, c.Writes)
}

// granted turns the verdict "ask" into "allow" if a grant covers the action, of which digest is the digest. The use of the grant is filed with the ruling,
// and so counted before the action is executed: after a crash in between, the action finds its own use on its bill.
func (s *policySession) applyGrant(ctx context.Context, key string, in policy.Input, decision policy.Decision, digest string) (policy.Decision, error) {
	if decision.Verdict != policy.Ask {
		return decision, nil
	}
	all, err := s.governor.ListGrants(ctx, s.tx.run.Account)
	if err != nil || len(all) == 0 {
		return decision, err
	}
	bill, err := s.receiptFor(ctx, key)
	if err != nil {
		return decision, err
	}
	slices.SortStableFunc(all, func(a, b Grant) int { // its own first, or it would use another one, too
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
			Grant: g.ID, Action: audit.Action{Name: truncateForAudit(in.Tool), Args: s.tx.digest(digest)}, Ruling: audit.Ruling{Digest: decision.Policy, Rules: decision.Rules, Grant: g.ID},
		}
		if bill.uses(g) == 0 {
			g.Usage.Uses, g.Usage.Amount = g.Usage.Uses+1, g.Usage.Amount+use.Amount
			bill.Grant, bill.Spent, bill.changed = g.ID, use.Amount, true
			err = s.tx.addAudit(systemActor, s.tx.auditPlace(), line)
		}
		decision.Verdict, decision.Grant, decision.Requirement = policy.Allow, g.ID, nil
		return decision, errors.Join(err, s.governor.addGrant(s.tx, &g)) // also one that is used again: it may be revoked at this moment
	}
	return decision, nil
}
