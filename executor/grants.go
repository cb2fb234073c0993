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
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/grant"
	"github.com/fermata-go/fermata/store"
)

// grantPaper is an approval that is remembered within bounds.
const grantPaper store.PaperKind = "grant"

// Grant is a remembered approval, and how far it is used up.
type Grant struct {
	grant.Grant
	Usage grant.Usage `json:"usage"`
	// Wish is the digest of what was wanted, if that had a key: see Remember.Once.
	Wish     string `json:"wish,omitempty"`
	revision int64
}

// Remember says how an approval is remembered. The rules by which people were asked may allow less, or nothing.
type Remember struct {
	// By is who wants it remembered: somebody who approved it, and may still decide. Auth is how strongly they were authenticated, Via the channel.
	By, Via string
	Auth    desk.Auth
	TTL     time.Duration
	MaxUses int
	Budget  *grant.Budget
	// Relax lets single arguments differ, by their JSON pointers. All others have to be the same.
	Relax map[string]grant.Constraint
	// Once, if it has a key, lets it be wanted again by who has no answer: one grant is made of it.
	Once desk.Once
}

// grantID is the id of the grant that is made of a request. Under a key it is always the same.
func grantID(request string, r Remember) string {
	if r.Once.Key == "" { //mutate:grant-idempotent
		return ident.Random("grt")
	}
	return ident.Derive("grt", request, r.By, r.Once.Key)
}

// Remember makes a grant of a request that was approved: the same action with the same arguments, at the same place and for the same requester,
// is allowed for a while without asking again. It returns ErrInvalid if the rules do not let it be remembered, or it was not approved by
// whoever wants it, and desk.ErrReused if its key was used for something else.
func (e *Executor) Remember(ctx context.Context, account, request string, r Remember) (g Grant, err error) {
	err = whileStale(ctx, func() (err error) {
		g, err = e.remember(ctx, account, request, r)
		return err
	})
	return g, err
}

func (e *Executor) remember(ctx context.Context, account, request string, r Remember) (Grant, error) {
	asked, err := e.store.Question(ctx, account, request)
	if err != nil {
		return Grant{}, err
	}
	question, err := e.openQuestion(asked)
	if err != nil {
		return Grant{}, err
	}
	if question.Request == nil {
		return Grant{}, store.ErrNotFound
	}
	doc := *question.Request
	from := desk.From{Actor: desk.Person(r.By, r.Auth), Via: r.Via}
	if doc.Final == nil || doc.Final.Outcome != desk.Approved || !slices.Contains(doc.Final.By, r.By) {
		err := fmt.Errorf("%w: %s has not approved it", ErrInvalid, r.By)
		return Grant{}, cmp.Or(e.writeRefused(ctx, question.Asked, Remembers, from, audit.RefusedNotAllowed), err)
	}
	if r.Once.Key != "" {
		if known, err := e.remembered(ctx, account, request, r); !isNotFound(err) {
			return known, err
		}
	}
	c, err := e.filingFor(ctx, question.Asked)
	if err != nil {
		return Grant{}, err
	}
	made, err := e.narrowest(ctx, c, question, doc, r)
	if err != nil {
		return Grant{}, e.noteAct(ctx, question.Asked, Remembers, from, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	g := Grant{Grant: made, Wish: r.Once.Digest}
	scope, err := json.Marshal(made)
	if err != nil {
		return Grant{}, err
	}
	line := audit.GrantMade{Grant: g.ID, Scope: c.digest(string(scope)), Until: audit.At(g.NotAfter), Uses: int64(g.MaxUses)}
	if err := c.line(personOf(from), c.placeOf(question.ID), line); err != nil {
		return Grant{}, err
	}
	if err := e.keepGrant(c, &g); err != nil {
		return Grant{}, err
	}
	//mutate:grant-locks-request
	c.Papers = append(c.Papers, e.again(*asked.Request)) // or the account may be erased by now, and nobody would ever delete the grant
	return g, e.store.Amend(ctx, account, c.Beside)
}

// remembered is the grant that was made under the same key.
func (e *Executor) remembered(ctx context.Context, account, request string, r Remember) (g Grant, err error) {
	paper, err := e.store.Paper(ctx, account, grantPaper, grantID(request, r))
	if err == nil {
		g, err = e.readGrant(paper)
	}
	if err == nil && g.Wish != r.Once.Digest {
		return Grant{}, desk.ErrReused
	}
	return g, err
}

// mayRemember refuses a grant if the request, or the rules as they are today, need several people, or the person could not decide it today.
func (e *Executor) mayRemember(doc desk.Request, today policy.Decision, r Remember) error {
	if today.Need != nil {
		doc.Need = doc.Need.Merge(requirement(*today.Need))
	}
	people := 0
	for _, g := range doc.Need.Groups {
		people += max(1, g.Count)
	}
	switch {
	case people > 1:
		return fmt.Errorf("it needs %d people each time", people)
	case !r.Auth.AtLeast(doc.Need.MinAuth):
		return desk.ErrWeakAuth
	}
	return e.MayDecide(doc, r.By)
}

// narrowest makes the narrowest grant for the arguments as they were approved, and relaxes it as asked.
func (e *Executor) narrowest(ctx context.Context, c *filing, question QuestionView, doc desk.Request, r Remember) (grant.Grant, error) {
	var asked fermata.ApprovalRequest
	if err := json.Unmarshal(question.Data, &asked); err != nil {
		return grant.Grant{}, err
	}
	args := asked.Args
	if doc.Final.Args != nil {
		args = doc.Final.Args
	}
	address, err := fermata.ParseAddress(question.Address)
	if err != nil {
		return grant.Grant{}, err
	}
	j, err := e.judge(ctx, c, address, asked.Action, args)
	if err == nil {
		err = e.mayRemember(doc, j.Decision, r)
	}
	if err != nil {
		return grant.Grant{}, err
	}
	made, err := grant.Narrowest(j.rated, j.Decision, grant.Terms{
		ID: grantID(question.ID, r), By: r.By, From: question.ID, Now: c.now, Given: doc.Final.At, TTL: r.TTL, MaxUses: r.MaxUses, Budget: r.Budget,
	})
	for pointer, constraint := range r.Relax {
		if err == nil {
			made, err = made.Relax(pointer, constraint)
		}
	}
	return made, err
}

// keepGrant files a grant as it is now.
func (e *Executor) keepGrant(c *filing, g *Grant) error {
	body, err := e.sealPaper(c.run.Account, grantPaper, g.ID, g)
	if err == nil {
		c.Papers = append(c.Papers, store.PaperChange{Kind: grantPaper, ID: g.ID, Base: g.revision, Body: body})
	}
	return err
}

// Grants lists what is remembered in an account, also what has ended.
func (e *Executor) Grants(ctx context.Context, account string) ([]Grant, error) {
	var all []Grant
	for paper, err := range e.papers(ctx, account, grantPaper, store.PaperFilter{Limit: papersAtOnce}) {
		if err != nil {
			return nil, err
		}
		if paper.Body == nil {
			continue // it was erased
		}
		g, err := e.readGrant(paper)
		if err != nil { // it allows nothing then; the others still do
			e.config.Log.Error("a grant that cannot be read", "account", paper.Account, "grant", paper.ID, "err", err)
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

func (e *Executor) readGrant(paper store.Paper) (Grant, error) {
	g := Grant{revision: paper.Revision}
	err := e.readBody(paper, &g)
	return g, err
}

// Revoke takes a grant back: the next time, people are asked again. It returns store.ErrNotFound if there is none.
func (e *Executor) Revoke(ctx context.Context, account, id string, by desk.From) error {
	return whileStale(ctx, func() error { return e.revoke(ctx, account, id, by) })
}

func (e *Executor) revoke(ctx context.Context, account, id string, by desk.From) error {
	paper, err := e.store.Paper(ctx, account, grantPaper, id)
	if err == nil && paper.Body == nil {
		err = store.ErrNotFound // it was erased
	}
	if err != nil {
		return err
	}
	g, err := e.readGrant(paper)
	if err != nil || !g.Revoked.IsZero() {
		return err
	}
	c := &filing{run: store.Run{Account: account}}
	if c.now, err = e.store.Now(ctx); err != nil {
		return err
	}
	g.Grant = g.Grant.Revoke(c.now)
	if err := errors.Join(c.line(personOf(by), audit.Place{}, audit.GrantRevoked{Grant: id}), e.keepGrant(c, &g)); err != nil {
		return err
	}
	return e.store.Amend(ctx, account, c.Beside)
}

// granted turns the verdict "ask" into "allow" if a grant covers the action, of which digest is the digest. The use of the grant is filed with the ruling,
// and so counted before the action is executed: after a crash in between, the action finds its own use on its bill.
func (e *Executor) granted(ctx context.Context, c *filing, in policy.Input, decision policy.Decision, digest string) (policy.Decision, error) {
	if decision.Verdict != policy.Ask {
		return decision, nil
	}
	all, err := e.Grants(ctx, c.run.Account)
	if err != nil || len(all) == 0 {
		return decision, err
	}
	bill, err := e.billed(ctx, c)
	if err != nil {
		return decision, err
	}
	slices.SortStableFunc(all, func(a, b Grant) int { // its own first, or it would use another one, too
		return cmp.Compare(bill.uses(b), bill.uses(a))
	})
	for _, g := range all {
		//mutate:grant-usage-not-counted-twice
		before := grant.Usage{Uses: g.Usage.Uses - bill.uses(g), Amount: g.Usage.Amount - bill.spent(g)}
		use, err := g.Match(in, decision, before, in.At)
		if err != nil {
			continue // it does not cover the action
		}
		line := audit.GrantUsed{
			Grant: g.ID, Action: audit.Action{Name: clip(in.Tool), Args: c.digest(digest)}, Ruling: audit.Ruling{Digest: decision.Policy, Rules: decision.Rules, Grant: g.ID},
		}
		if bill.uses(g) == 0 {
			g.Usage.Uses, g.Usage.Amount = g.Usage.Uses+1, g.Usage.Amount+use.Amount
			bill.Grant, bill.Spent, bill.changed = g.ID, use.Amount, true
			err = c.line(theSystem, c.place(), line)
		}
		decision.Verdict, decision.Grant, decision.Need = policy.Allow, g.ID, nil
		return decision, errors.Join(err, e.keepGrant(c, &g)) // also one that is used again: it may be revoked at this moment
	}
	return decision, nil
}
