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
	Usage    grant.Usage `json:"usage"`
	recent   []recentUse
	revision int64
}

// recentUse is a use that may be judged again: when a run is taken over, the same action does not use the grant twice.
type recentUse struct {
	Key    string    `json:"k"`
	Amount int64     `json:"n,omitempty"`
	At     time.Time `json:"at"`
}

// keptGrant is a grant as it is stored.
type keptGrant struct {
	*Grant
	Recent []recentUse `json:"recent,omitempty"`
}

// usedBy is the use of an action; nil if it has not used the grant lately.
func (g *Grant) usedBy(key string) *recentUse {
	i := slices.IndexFunc(g.recent, func(u recentUse) bool { return key != "" && u.Key == key })
	if i < 0 {
		return nil
	}
	return &g.recent[i]
}

// use counts a use. One that the action has had before is not counted again.
func (g *Grant) use(key string, amount int64, now time.Time) {
	g.recent = slices.DeleteFunc(g.recent, func(u recentUse) bool { return now.Sub(u.At) > keyed })
	if g.usedBy(key) == nil {
		g.Usage.Uses, g.Usage.Amount = g.Usage.Uses+1, g.Usage.Amount+amount
		g.recent = append(g.recent, recentUse{Key: key, Amount: amount, At: now})
	}
}

// without is how far the grant is used up by all others.
func (g *Grant) without(key string) grant.Usage {
	usage := g.Usage
	if own := g.usedBy(key); own != nil {
		usage.Uses, usage.Amount = usage.Uses-1, usage.Amount-own.Amount
	}
	return usage
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
}

// Remember makes a grant of a request that was approved: the same action with the same arguments, at the same place and for the same requester,
// is allowed for a while without asking again. It returns ErrInvalid if the rules do not let it be remembered, or it was not approved by
// whoever wants it.
func (e *Executor) Remember(ctx context.Context, account, request string, r Remember) (Grant, error) {
	question, err := e.Question(ctx, account, request)
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
	c, err := e.filingFor(ctx, question.Asked)
	if err != nil {
		return Grant{}, err
	}
	made, err := e.narrowest(ctx, c, question, doc, r)
	if err != nil {
		return Grant{}, e.noteAct(ctx, question.Asked, Remembers, from, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	g := Grant{Grant: made}
	scope, err := json.Marshal(made)
	if err != nil {
		return Grant{}, err
	}
	line := audit.GrantMade{Grant: g.ID, Scope: c.digest(string(scope)), Until: audit.At(g.NotAfter), Uses: int64(g.MaxUses)}
	place := c.place()
	place.Interrupt, place.Request = question.ID, question.ID
	if err := c.line(personOf(from), place, line); err != nil {
		return Grant{}, err
	}
	if err := e.keepGrant(c, &g); err != nil {
		return Grant{}, err
	}
	return g, e.store.Amend(ctx, account, c.Beside)
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
	made, err := grant.Narrowest(j.in, j.Decision, grant.Terms{
		ID: ident.Random("grt"), By: r.By, From: question.ID, Now: c.now, Given: doc.Final.At, TTL: r.TTL, MaxUses: r.MaxUses, Budget: r.Budget,
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
	body, err := e.sealPaper(c.run.Account, grantPaper, g.ID, keptGrant{g, g.recent})
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
			e.config.Log.Error("a grant that cannot be read", "grant", paper.ID, "err", err)
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

func (e *Executor) readGrant(paper store.Paper) (Grant, error) {
	g := Grant{revision: paper.Revision}
	data, err := e.openPaper(paper)
	kept := keptGrant{Grant: &g}
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	g.recent = kept.Recent
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
// and so counted before the action is executed: after a crash in between, the action finds its own use.
func (e *Executor) granted(ctx context.Context, c *filing, in policy.Input, decision policy.Decision, digest string) (policy.Decision, error) {
	if decision.Verdict != policy.Ask {
		return decision, nil
	}
	all, err := e.Grants(ctx, c.run.Account)
	if err != nil {
		return decision, err
	}
	if own := slices.IndexFunc(all, func(g Grant) bool { return g.usedBy(c.key) != nil }); own > 0 {
		all[0], all[own] = all[own], all[0] // or it would use another one, too
	}
	for _, g := range all {
		use, err := g.Match(in, decision, g.without(c.key), in.At)
		if err != nil {
			continue // it does not cover the action
		}
		again := g.usedBy(c.key) != nil
		g.use(c.key, use.Amount, in.At)
		if err := e.keepGrant(c, &g); err != nil { // also one that is used again: it may be revoked at this moment
			return decision, err
		}
		line := audit.GrantUsed{
			Grant: g.ID, Action: audit.Action{Name: clip(in.Tool), Args: c.digest(digest)}, Ruling: audit.Ruling{Digest: decision.Policy, Rules: decision.Rules, Grant: g.ID},
		}
		if !again {
			err = c.line(theSystem, c.place(), line)
		}
		decision.Verdict, decision.Grant, decision.Need = policy.Allow, g.ID, nil
		return decision, err
	}
	return decision, nil
}
