package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// GrantRequest says how an approval is remembered. The policy may allow less, or nothing.
type GrantRequest struct {
	// By is the actor: one who approved the request and may still decide it. Auth is how strongly
	// they were authenticated, Via the channel.
	By, Via string
	Auth    requirement.Auth
	TTL     time.Duration
	MaxUses int
	Budget  *grant.Budget
	// Relax lets single arguments differ, by their JSON pointers. All others have to be the same.
	Relax map[string]grant.Constraint
	// Idempotency, if it has a key, lets the request be repeated: it creates one grant.
	Idempotency desk.IdempotencyKey
}

// grantID is the id of the grant that is made of a request. Under a key it is always the same.
func grantID(request string, r GrantRequest) string {
	if r.Idempotency.Key == "" { //mutate:grant-idempotent
		return ident.Random("grt")
	}
	return ident.Derive("grt", request, r.By, r.Idempotency.Key)
}

// CreateGrant creates a grant from an approved request: the same action with the same arguments, at
// the same address and for the same requester, is allowed for a while without asking again. It
// returns ErrInvalid if the policy does not allow the grant or the actor did not approve the
// request, and desk.ErrKeyReused if its idempotency key was used for something else.
func (s *Service) CreateGrant(ctx context.Context, account, request string, r GrantRequest) (g govern.Grant, err error) {
	err = retry.WhileStale(ctx, func() (err error) {
		g, err = s.tryCreateGrant(ctx, account, request, r)
		return err
	})
	return g, err
}

func (s *Service) tryCreateGrant(ctx context.Context, account, request string, r GrantRequest) (govern.Grant, error) {
	asked, err := s.store.InboxItem(ctx, account, request)
	if err != nil {
		return govern.Grant{}, err
	}
	question, err := s.docs.ToRequestView(asked)
	if err != nil {
		return govern.Grant{}, err
	}
	if question.Request == nil {
		return govern.Grant{}, store.ErrNotFound
	}
	doc := *question.Request
	from := desk.From{Actor: desk.PersonActor(r.By, r.Auth), Via: r.Via}
	if doc.Decision == nil || doc.Decision.Outcome != desk.OutcomeApproved || !slices.Contains(doc.Decision.By, r.By) {
		err := fmt.Errorf("%w: %s has not approved it", errs.ErrInvalid, r.By)
		return govern.Grant{}, cmp.Or(s.recordRefusedAct(ctx, question.InboxItem, ActCreateGrant, from, audit.RefusedNotAllowed), err)
	}
	if r.Idempotency.Key != "" {
		if known, err := s.existingGrant(ctx, account, request, r); !docs.IsNotFound(err) {
			return known, err
		}
	}
	relaxed := slices.Collect(maps.Keys(r.Relax))
	err = s.recordReveal(ctx, question, from, func(pointer string) bool { // whether it fits tells something about the value
		return slices.ContainsFunc(relaxed, func(other string) bool { return desk.Overlap(pointer, other) })
	})
	if err != nil {
		return govern.Grant{}, err
	}
	c, err := s.WorkFor(ctx, question.InboxItem)
	if err != nil {
		return govern.Grant{}, err
	}
	made, err := s.narrowestGrant(ctx, c, question, doc, r)
	if err != nil {
		return govern.Grant{}, s.recordIfRefused(ctx, question.InboxItem, ActCreateGrant, from, fmt.Errorf("%w: %w", errs.ErrInvalid, err))
	}
	g := govern.Grant{Grant: made, RequestDigest: r.Idempotency.Digest}
	scope, err := json.Marshal(made)
	if err != nil {
		return govern.Grant{}, err
	}
	line := audit.GrantMade{Grant: g.ID, Scope: c.Digest(string(scope)), Until: audit.TimestampOf(g.NotAfter), Uses: int64(g.MaxUses)}
	if err := c.AddAudit(auditrec.AuditActor(from), c.RequestPlace(question.ID), line); err != nil {
		return govern.Grant{}, err
	}
	if err := s.governor.AddGrant(c, &g); err != nil {
		return govern.Grant{}, err
	}
	//mutate:grant-locks-request
	// fails if the account is erased by now: the grant would never be deleted
	c.Documents = append(c.Documents, s.docs.Unchanged(*asked.Request))
	return g, s.store.CommitWrites(ctx, account, c.Writes)
}

// existingGrant returns the grant that was created under the same key.
func (s *Service) existingGrant(ctx context.Context, account, request string, r GrantRequest) (g govern.Grant, err error) {
	paper, err := s.store.Document(ctx, account, docs.GrantKind, grantID(request, r))
	if err == nil {
		g, err = s.governor.DecodeGrant(paper)
	}
	if err == nil && g.RequestDigest != r.Idempotency.Digest {
		return govern.Grant{}, desk.ErrKeyReused
	}
	return g, err
}

// checkGrantable refuses a grant if the request, or the current policy, needs several people, or
// the person could not decide it today.
func (s *Service) checkGrantable(doc desk.Request, today policy.Decision, r GrantRequest) error {
	if today.Requirement != nil {
		doc.Requirement = doc.Requirement.Merge(*today.Requirement)
	}
	people := 0
	for _, g := range doc.Requirement.Groups {
		people += max(1, g.Count)
	}
	switch {
	case people > 1:
		return fmt.Errorf("it needs %d people each time", people)
	case !r.Auth.AtLeast(doc.Requirement.MinAuth):
		return &desk.WeakAuthError{Need: doc.Requirement.MinAuth}
	}
	return s.MayDecide(doc, r.By)
}

// narrowestGrant creates the narrowest grant for the arguments as they were approved, and relaxes
// it as requested.
func (s *Service) narrowestGrant(ctx context.Context, c *txn.Tx, question docs.RequestView, doc desk.Request, r GrantRequest) (grant.Grant, error) {
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
	j, err := s.governor.NewSession(c, history.New(s.docs, c.Run)).Evaluate(ctx, "", address, asked.Action, args)
	if err == nil {
		err = s.checkGrantable(doc, j.Decision, r)
	}
	if err != nil {
		return grant.Grant{}, err
	}
	made, err := grant.Narrowest(j.RatedInput, j.Decision, grant.Terms{
		ID: grantID(question.ID, r), By: r.By, Request: question.ID, Now: c.Now, ApprovedAt: doc.Decision.At, TTL: r.TTL, MaxUses: r.MaxUses, Budget: r.Budget,
	})
	for pointer, constraint := range r.Relax {
		if err == nil {
			made, err = made.Relax(pointer, constraint)
		}
	}
	return made, err
}
