package grant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/policy"
)

// Scope is where a grant holds. Every field has to be the same.
type Scope struct {
	Account     string `json:"account"`
	Environment string `json:"environment,omitempty"`
	Graph       string `json:"graph,omitempty"`
	Requester   string `json:"requester,omitempty"`
	Tool        string `json:"tool"`
}

// ScopeOf is where an input would be done.
func ScopeOf(in policy.Input) Scope {
	return Scope{Account: in.Account, Environment: in.Environment, Graph: in.Graph, Requester: in.Requester, Tool: in.Tool}
}

// Grant is a remembered yes. It is plain data; its methods return new ones.
type Grant struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	// Args has a constraint for every leaf of the arguments, under its JSON pointer.
	Args map[string]Constraint `json:"args"`
	// Rules are the rules that asked, with their digests. A rule that is new, or has changed since, is not covered.
	Rules map[string]string `json:"rules"`
	// Need is what they demanded. The same rule may demand it of others elsewhere, as group:owners:${req.node} does.
	Requirement *policy.Requirement `json:"need"`
	// By is who gave it, From the request that was approved.
	By      string `json:"by"`
	Request string `json:"from,omitempty"`
	// Since, when the yes was given, and NotAfter bound it in time: it holds before NotAfter.
	Since    time.Time `json:"since"`
	NotAfter time.Time `json:"notAfter"`
	// MaxUses is how often it can be used. Zero is never.
	MaxUses int `json:"maxUses"`
	// Budget bounds the sum over all uses; nil bounds nothing.
	Budget *Budget `json:"budget,omitempty"`
	// Revoked is when it was taken back; zero if it was not.
	Revoked time.Time `json:"revoked,omitzero"`
}

// Budget is how much all uses of a grant may come to.
type Budget struct {
	// Of is the JSON pointer of a whole number in the arguments, or [Cost].
	Of  string `json:"of"`
	Max int64  `json:"max"`
}

// Cost as [Budget.Of] is what the action costs, as the input says: see [policy.Set.WithRating].
const Cost = "cost"

// Terms are what a person adds to a yes to have it remembered.
type Terms struct {
	ID, By, Request string
	// Now is when the grant is made, Given when the yes was given; zero is Now.
	Now, ApprovedAt time.Time
	// TTL is for how long from now. The policy's remember_max counts from the yes: whoever gave one must not prolong it by having it remembered again.
	TTL     time.Duration
	MaxUses int
	Budget  *Budget
}

// ErrNotRememberable means that the decision is none that a grant can stand for: it did not ask, or its rules forbid to
// remember the answer.
var ErrNotRememberable = errors.New("grant: this cannot be remembered")

// Narrowest makes the grant that matches what was approved, and no other arguments.
func Narrowest(in policy.Input, decision policy.Decision, terms Terms) (Grant, error) {
	if decision.Verdict != policy.Ask || decision.Requirement == nil {
		return Grant{}, fmt.Errorf("%w: nobody was asked, the verdict was %s", ErrNotRememberable, decision.Verdict)
	}
	longest := time.Duration(decision.Requirement.RememberMax)
	if longest <= 0 {
		return Grant{}, fmt.Errorf("%w: remember_max is 0 in %v", ErrNotRememberable, decision.Rules)
	}
	if terms.TTL <= 0 || terms.MaxUses <= 0 || terms.Now.IsZero() {
		return Grant{}, fmt.Errorf("%w: it needs a time, a span and a number of uses", ErrNotRememberable)
	}
	since := terms.Now
	if !terms.ApprovedAt.IsZero() {
		since = terms.ApprovedAt
	}
	until := since.Add(longest)
	if !terms.Now.Before(until) {
		return Grant{}, fmt.Errorf("%w: the yes is older than the rules let it be remembered, %s", ErrNotRememberable, decision.Requirement.RememberMax)
	}
	if wanted := terms.Now.Add(terms.TTL); wanted.Before(until) {
		until = wanted
	}
	leaves, err := leavesOf(in.Args)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{
		ID: terms.ID, Scope: ScopeOf(in), Args: make(map[string]Constraint, len(leaves)), Rules: decision.RuleDigests(), Requirement: decision.Requirement,
		By: terms.By, Request: terms.Request, Since: since, NotAfter: until, MaxUses: terms.MaxUses,
	}
	for pointer, l := range leaves {
		g.Args[pointer] = Constraint{Op: Eq, Type: l.kind, Containers: l.containers, Value: l.raw}
	}
	if terms.Budget != nil {
		budget := *terms.Budget
		if _, err := budget.amount(in, leaves); err != nil {
			return Grant{}, fmt.Errorf("%w: %w", ErrNotRememberable, err)
		}
		g.Budget = &budget
	}
	return g, nil
}

// Usage is how far a grant is used up.
type Usage struct {
	Uses   int
	Amount int64
}

// Use is what one use adds.
type Use struct {
	Grant  string `json:"grant"`
	Amount int64  `json:"amount,omitempty"`
}

// Match says whether the grant stands for a person's yes to this input, of which the rules have just said the decision. The
// error is a [*Mismatch].
func (g Grant) Match(in policy.Input, decision policy.Decision, usage Usage, now time.Time) (Use, error) {
	if err := g.checkUsable(usage, now); err != nil {
		return Use{}, err
	}
	if err := g.checkRules(decision, now); err != nil {
		return Use{}, err
	}
	if err := g.Scope.match(ScopeOf(in)); err != nil {
		return Use{}, err
	}
	leaves, err := leavesOf(in.Args)
	if err != nil {
		return Use{}, newMismatch(MismatchArgument, "the arguments cannot be read")
	}
	if err := g.checkArguments(leaves); err != nil {
		return Use{}, err
	}
	use := Use{Grant: g.ID}
	if g.Budget == nil {
		return use, nil
	}
	if use.Amount, err = g.Budget.amount(in, leaves); err != nil {
		return Use{}, newMismatch(MismatchAmount, "%v", err)
	}
	if usage.Amount < 0 || use.Amount > g.Budget.Max-usage.Amount {
		return Use{}, newMismatch(MismatchAmount, "%d more would go beyond the %d that were granted", use.Amount, g.Budget.Max)
	}
	return use, nil
}

func (g Grant) checkUsable(usage Usage, now time.Time) error {
	switch {
	case !g.Revoked.IsZero():
		return newMismatch(MismatchRevoked, "the grant was revoked")
	case now.Before(g.Since):
		return newMismatch(MismatchExpired, "the grant is not yet good")
	case !now.Before(g.NotAfter):
		return newMismatch(MismatchExpired, "the grant has expired")
	case usage.Uses < 0 || usage.Uses >= g.MaxUses:
		return newMismatch(MismatchUsedUp, "the grant was used %d of %d times", usage.Uses, g.MaxUses)
	}
	return nil
}

// covers compares the rules that ask now with those that asked then.
func (g Grant) checkRules(decision policy.Decision, now time.Time) error {
	if decision.Verdict != policy.Ask || decision.Requirement == nil {
		return newMismatch(MismatchVerdict, "the rules say %s, and a grant only stands for an answer", decision.Verdict)
	}
	if now.Sub(g.Since) >= time.Duration(decision.Requirement.RememberMax) {
		return newMismatch(MismatchRule, "the rules let an answer be remembered for %s at most", decision.Requirement.RememberMax)
	}
	digests := decision.RuleDigests()
	for _, id := range slices.Sorted(maps.Keys(digests)) {
		switch given, known := g.Rules[id]; {
		case !known:
			return newMismatch(MismatchRule, "rule %s was not part of what was approved", id)
		case given != digests[id]:
			return newMismatch(MismatchRule, "rule %s has changed since", id)
		}
	}
	if less := policy.RequirementWeakenings(decision.Requirement, g.Requirement); len(less) > 0 {
		return newMismatch(MismatchRule, "the rules demand more here than where it was approved: %s", strings.Join(less, ", "))
	}
	return nil
}

func (s Scope) match(other Scope) error {
	for _, field := range []struct{ name, want, got string }{
		{"account", s.Account, other.Account}, {"environment", s.Environment, other.Environment}, {"graph", s.Graph, other.Graph},
		{"requester", s.Requester, other.Requester}, {"tool", s.Tool, other.Tool},
	} {
		if field.want != field.got {
			return newMismatch(MismatchScope, "the grant is for another %s", field.name)
		}
	}
	return nil
}

func (g Grant) checkArguments(leaves map[string]leaf) error {
	for _, pointer := range slices.Sorted(maps.Keys(leaves)) {
		if _, named := g.Args[pointer]; !named {
			return newMismatch(MismatchArgument, "argument %s is new", pointer)
		}
	}
	for _, pointer := range slices.Sorted(maps.Keys(g.Args)) {
		l, there := leaves[pointer]
		if !there {
			return newMismatch(MismatchArgument, "argument %s is missing", pointer)
		}
		if why := g.Args[pointer].reject(l); why != "" {
			return newMismatch(MismatchArgument, "argument %s %s", pointer, why)
		}
	}
	return nil
}

// Relax returns the grant with another constraint for one leaf. It has to hold for what was approved, too.
func (g Grant) Relax(pointer string, c Constraint) (Grant, error) {
	old, named := g.Args[pointer]
	if !named {
		return g, fmt.Errorf("grant: there is no argument %s", pointer)
	}
	if old.Op != Eq {
		return g, fmt.Errorf("grant: argument %s was relaxed already", pointer)
	}
	c.Type, c.Containers = old.Type, old.Containers
	if err := c.check(); err != nil {
		return g, fmt.Errorf("grant: argument %s: %w", pointer, err)
	}
	if why := c.reject(leaf{kind: old.Type, containers: old.Containers, raw: old.Value}); why != "" {
		return g, fmt.Errorf("grant: argument %s: what was approved %s", pointer, why)
	}
	g.Args = maps.Clone(g.Args)
	g.Args[pointer] = c
	return g, nil
}

// Revoke returns the grant taken back.
func (g Grant) Revoke(now time.Time) Grant {
	if g.Revoked.IsZero() {
		g.Revoked = now
	}
	return g
}
