package grant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Scope is where a grant is valid. Every field must be equal.
type Scope struct {
	Account     string `json:"account"`
	Environment string `json:"environment,omitempty"`
	Graph       string `json:"graph,omitempty"`
	Requester   string `json:"requester,omitempty"`
	Tool        string `json:"tool"`
}

// ScopeOf returns the scope of an input.
func ScopeOf(in policy.Input) Scope {
	return Scope{Account: in.Account, Environment: in.Environment, Graph: in.Graph, Requester: in.Requester, Tool: in.Tool}
}

// Grant is a remembered approval. It is plain data; its methods return copies.
type Grant struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	// Args has a constraint for every leaf of the arguments, by JSON pointer.
	Args map[string]Constraint `json:"args"`
	// Rules are the rules that asked, with their digests. A new or changed rule is not covered.
	Rules map[string]string `json:"rules"`
	// Requirement is what the rules required. The same rule may require other people elsewhere, as
	// group:owners:${req.node} does.
	Requirement *policy.Requirement `json:"need"`
	// By is the approver, Request the approved request.
	By      string `json:"by"`
	Request string `json:"from,omitempty"`
	// Since is the time of the approval. The grant is valid from Since until before NotAfter.
	Since    time.Time `json:"since"`
	NotAfter time.Time `json:"notAfter"`
	// MaxUses is how often it can be used. Zero means never.
	MaxUses int `json:"maxUses"`
	// Budget limits the sum over all uses. Nil means no limit.
	Budget *Budget `json:"budget,omitempty"`
	// Revoked is when the grant was revoked, or zero.
	Revoked time.Time `json:"revoked,omitzero"`
}

// Budget limits the total amount of all uses.
type Budget struct {
	// Of is the JSON pointer of an integer in the arguments, or [Cost].
	Of  string `json:"of"`
	Max int64  `json:"max"`
}

// Cost as [Budget.Of] is the cost of the action in the input: see [policy.Set.WithRating].
const Cost = "cost"

// Terms are the terms under which an approval is remembered.
type Terms struct {
	ID, By, Request string
	// Now is the creation time of the grant. ApprovedAt is the time of the approval; zero means
	// Now.
	Now, ApprovedAt time.Time
	// TTL is the validity from now. The policy's remember_max counts from the approval, so that a
	// repeated grant does not prolong it.
	TTL     time.Duration
	MaxUses int
	Budget  *Budget
}

// ErrNotRememberable means that a grant cannot be made from the decision: the rules did not ask, or
// they do not allow grants.
var ErrNotRememberable = errors.New("grant: the approval cannot be remembered")

// Narrowest returns the grant that matches exactly the approved arguments.
func Narrowest(in policy.Input, decision policy.Decision, terms Terms) (Grant, error) {
	if decision.Verdict != policy.Ask || decision.Requirement == nil {
		return Grant{}, fmt.Errorf("%w: no approval was requested, the verdict was %s", ErrNotRememberable, decision.Verdict)
	}
	longest := time.Duration(decision.Requirement.RememberMax)
	if longest <= 0 {
		return Grant{}, fmt.Errorf("%w: remember_max is 0 in %v", ErrNotRememberable, decision.Rules)
	}
	if terms.TTL <= 0 || terms.MaxUses <= 0 || terms.Now.IsZero() {
		return Grant{}, fmt.Errorf("%w: time, TTL and number of uses are required", ErrNotRememberable)
	}
	since := terms.Now
	if !terms.ApprovedAt.IsZero() {
		since = terms.ApprovedAt
	}
	until := since.Add(longest)
	if !terms.Now.Before(until) {
		return Grant{}, fmt.Errorf("%w: the approval is older than remember_max, %s", ErrNotRememberable, decision.Requirement.RememberMax)
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

// Usage is how much of a grant is used.
type Usage struct {
	Uses   int
	Amount int64
}

// Use is one use of a grant.
type Use struct {
	Grant  string `json:"grant"`
	Amount int64  `json:"amount,omitempty"`
}

// Match reports whether the grant replaces an approval of this input, given the current decision of
// the rules. The error is a [*Mismatch].
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
		return Use{}, newMismatch(MismatchArgument, "invalid arguments")
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
		return Use{}, newMismatch(MismatchAmount, "%d more would exceed the granted total of %d", use.Amount, g.Budget.Max)
	}
	return use, nil
}

func (g Grant) checkUsable(usage Usage, now time.Time) error {
	switch {
	case !g.Revoked.IsZero():
		return newMismatch(MismatchRevoked, "the grant was revoked")
	case now.Before(g.Since):
		return newMismatch(MismatchExpired, "the grant is not valid yet")
	case !now.Before(g.NotAfter):
		return newMismatch(MismatchExpired, "the grant has expired")
	case usage.Uses < 0 || usage.Uses >= g.MaxUses:
		return newMismatch(MismatchUsedUp, "the grant was used %d of %d times", usage.Uses, g.MaxUses)
	}
	return nil
}

// checkRules compares the rules that ask now with the rules of the approval.
func (g Grant) checkRules(decision policy.Decision, now time.Time) error {
	if decision.Verdict != policy.Ask || decision.Requirement == nil {
		return newMismatch(MismatchVerdict, "the rules say %s, and a grant replaces only an ask", decision.Verdict)
	}
	if now.Sub(g.Since) >= time.Duration(decision.Requirement.RememberMax) {
		return newMismatch(MismatchRule, "the rules allow a grant for at most %s", decision.Requirement.RememberMax)
	}
	digests := decision.RuleDigests()
	for _, id := range slices.Sorted(maps.Keys(digests)) {
		switch given, known := g.Rules[id]; {
		case !known:
			return newMismatch(MismatchRule, "rule %s was not part of the approval", id)
		case given != digests[id]:
			return newMismatch(MismatchRule, "rule %s has changed since the approval", id)
		}
	}
	if less := requirement.Weakenings(decision.Requirement, g.Requirement); len(less) > 0 {
		return newMismatch(MismatchRule, "the rules require more here than at the approval: %s", strings.Join(less, ", "))
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

// Relax returns the grant with another constraint for one leaf. The approved value must still
// match.
func (g Grant) Relax(pointer string, c Constraint) (Grant, error) {
	old, named := g.Args[pointer]
	if !named {
		return g, fmt.Errorf("grant: no argument %s", pointer)
	}
	if old.Op != Eq {
		return g, fmt.Errorf("grant: argument %s is already relaxed", pointer)
	}
	c.Type, c.Containers = old.Type, old.Containers
	approved, isNumber := rational(old.Value)
	c.Fraction = isNumber && !approved.IsInt()
	if err := c.check(); err != nil {
		return g, fmt.Errorf("grant: argument %s: %w", pointer, err)
	}
	if why := c.reject(leaf{kind: old.Type, containers: old.Containers, raw: old.Value}); why != "" {
		return g, fmt.Errorf("grant: argument %s: the approved value %s", pointer, why)
	}
	g.Args = maps.Clone(g.Args)
	g.Args[pointer] = c
	return g, nil
}

// Revoke returns the grant as revoked.
func (g Grant) Revoke(now time.Time) Grant {
	if g.Revoked.IsZero() {
		g.Revoked = now
	}
	return g
}
