package desk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Requirement says who must agree before a request is decided, and what they may do.
type Requirement struct {
	// Groups must all be satisfied, by different people.
	Groups []Group `json:"groups"`
	// Exclude lists the duties that keep somebody from deciding.
	Exclude []Duty `json:"exclude,omitempty"`
	// Denials is how many rejections end the request; 0 is 1.
	Denials int `json:"denials,omitempty"`
	// Editable are the JSON pointers below which an approver may change arguments; "" is all of them, none is nothing.
	Editable []string `json:"editable,omitempty"`
	// MinAuth is how well somebody who decides must be authenticated.
	MinAuth Auth `json:"min_auth,omitempty"`
	// Verbs are what people may do; none given is the usual ones for what is asked.
	Verbs []Verb `json:"verbs,omitempty"`
	// Deadline, counted from the asking, is when the request is over at the latest; 0 leaves it to the route.
	Deadline Duration `json:"deadline,omitempty"`
	// OnTimeout is what happens at that time; by default it expires.
	OnTimeout OnTimeout `json:"on_timeout,omitempty"`
}

// OnTimeout is what happens when nobody has decided by the time that a requirement sets. Nothing is ever approved by waiting.
type OnTimeout string

// EventType can happen then.
const (
	ExpireOnTimeout   OnTimeout = "expire"
	EscalateOnTimeout OnTimeout = "escalate" // everything that the route still has to say is said now, and the route's own deadline holds
)

// limit is how long the request may be open at most; 0 if the requirement sets no limit.
func (q Requirement) maxOpen() Duration {
	if q.OnTimeout == EscalateOnTimeout {
		return 0
	}
	return q.Deadline
}

// Group is one of the parties that must agree.
type Group struct {
	// From says who is in it, each as group:, user:, role:, oncall: and a name; [PrincipalAnyone]; or [PrincipalRequester].
	From []string `json:"from"`
	// Count is how many of them must agree; 0 is 1.
	Count int `json:"count,omitempty"`
	// Widen is who may be added by a step of the route.
	Widen []string `json:"widen,omitempty"`
}

// Who can be named without a directory, beside user:.
const (
	PrincipalAnyone    = "anyone"
	PrincipalRequester = "requester" // a confirmation, which is no second pair of eyes
)

// need is how many people of the group must agree.
func (g Group) minCount() int { return max(1, g.Count) }

// String names the group for people: "finops", "db-oncall or dba".
func (g Group) String() string {
	names := make([]string, len(g.From))
	for i, who := range g.From {
		names[i] = who
		if kind, name, ok := strings.Cut(who, ":"); ok && kind != "oncall" {
			names[i] = name
		}
	}
	return strings.Join(names, " or ")
}

// Duty is a part that somebody already has in a request.
type Duty string

// The duties that can be kept apart from deciding.
const (
	DutyRequester Duty = "requester" // on whose behalf the run asks
	// DutyAuthor is who had a hand in what is to be done: see [Subject.Authors].
	DutyAuthor     Duty = "author"
	DutyLastEditor Duty = "last_editor" // performer changed the arguments last: cannot approve, but can still reject
	// DutyPriorApprover is who approved something before in the same run.
	DutyPriorApprover Duty = "prior_approver"
)

var duties = []Duty{DutyRequester, DutyAuthor, DutyLastEditor, DutyPriorApprover}

// Auth is how well somebody is authenticated.
type Auth string

// The strengths of authentication, the weakest first.
const (
	AuthNone     Auth = ""
	AuthLinked   Auth = "slack_linked" // a chat account that was linked to the person
	AuthToken    Auth = "token"        // an API key
	AuthSSO      Auth = "sso"
	AuthMFA      Auth = "sso_mfa"
	AuthHardware Auth = "hardware"
)

var authLevels = []Auth{AuthNone, AuthLinked, AuthToken, AuthSSO, AuthMFA, AuthHardware}

// AtLeast reports whether a is as strong as least. A strength that nobody knows is the weakest, and enough for nothing.
func (a Auth) AtLeast(least Auth) bool {
	want := slices.Index(authLevels, least)
	return want == 0 || want > 0 && slices.Index(authLevels, a) >= want
}

// Verb is something that people do with a request.
type Verb string

// EventType people do. A requirement lists those of them that are allowed.
const (
	VerbApprove          Verb = "approve"
	VerbEdit             Verb = "edit" // approve with edited arguments
	VerbReject           Verb = "reject"
	VerbRespond          Verb = "respond"
	VerbAskClarification Verb = "ask"
	VerbClaim            Verb = "claim"
	VerbDelegate         Verb = "delegate"
	VerbSnooze           Verb = "snooze"
	VerbExtend           Verb = "extend"
	VerbEscalate         Verb = "escalate"
	VerbAbandon          Verb = "escape"
)

var (
	actionVerbs   = []Verb{VerbApprove, VerbEdit, VerbReject, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
	questionVerbs = []Verb{VerbRespond, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
	allVerbs      = append(slices.Clone(actionVerbs), VerbRespond)
)

// The most that a requirement may ask for.
const (
	maxGroups = 20
	maxCount  = 50
)

// OnePerson is what is required where nobody says anything: any one person, who may edit everything.
func OnePerson() Requirement {
	return Requirement{Groups: []Group{{From: []string{PrincipalAnyone}}}, Editable: []string{""}}
}

// Check returns everything that is wrong with the requirement.
func (q Requirement) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(q.Groups) == 0 {
		bad("nobody is asked: a requirement needs a group")
	}
	if len(q.Groups) > maxGroups {
		bad("%d groups are more than %d", len(q.Groups), maxGroups)
	}
	for i, g := range q.Groups {
		if len(g.From) == 0 {
			bad("group %d has nobody in it", i+1)
		}
		if g.Count < 0 || g.Count > maxCount {
			bad("group %d: a count of %d is not in 1 to %d", i+1, g.Count, maxCount)
		}
		for _, who := range slices.Concat(g.From, g.Widen) {
			if !isPrincipal(who) {
				bad("group %d: %q names nobody: use group:, user:, role: or oncall: and a name, %s or %s", i+1, who, PrincipalAnyone, PrincipalRequester)
			}
		}
	}
	for _, d := range q.Exclude {
		if !slices.Contains(duties, d) {
			bad("unknown duty %q", d)
		}
	}
	for _, v := range q.Verbs {
		if !slices.Contains(allVerbs, v) {
			bad("unknown verb %q", v)
		}
	}
	for _, p := range q.Editable {
		if p != "" && p[0] != '/' {
			bad("editable: %q is no JSON pointer", p)
		}
	}
	if !slices.Contains(authLevels, q.MinAuth) {
		bad("unknown strength of authentication %q", q.MinAuth)
	}
	if !slices.Contains([]OnTimeout{"", ExpireOnTimeout, EscalateOnTimeout}, q.OnTimeout) {
		bad("on_timeout is expire or escalate, not %q", q.OnTimeout)
	}
	if q.OnTimeout == EscalateOnTimeout && q.Deadline == 0 {
		bad("on_timeout: escalate needs a deadline")
	}
	if q.Denials < 0 || q.Denials > maxCount {
		bad("%d denials are not in 1 to %d", q.Denials, maxCount)
	}
	if q.Deadline < 0 {
		bad("a deadline of %s is in the past", q.Deadline)
	}
	return errors.Join(errs...)
}

func isPrincipal(who string) bool {
	kind, name, ok := strings.Cut(who, ":")
	if !ok {
		return who == PrincipalAnyone || who == PrincipalRequester
	}
	return name != "" && slices.Contains([]string{"group", "user", "role", "oncall"}, kind)
}

// Merge is the strictest of both: all groups of the one and of the other, the higher strength, the shorter deadline, and only
// what both allow.
func (q Requirement) Merge(other Requirement) Requirement {
	q.Groups = mergeGroups(q.Groups, other.Groups)
	q.Exclude = union(q.Exclude, other.Exclude)
	q.Denials = min(max(1, q.Denials), max(1, other.Denials))
	q.Editable = commonPointers(q.Editable, other.Editable)
	if other.MinAuth.AtLeast(q.MinAuth) {
		q.MinAuth = other.MinAuth
	}
	switch {
	case len(q.Verbs) == 0:
		q.Verbs = slices.Clone(other.Verbs)
	case len(other.Verbs) > 0:
		q.Verbs = slices.DeleteFunc(slices.Clone(q.Verbs), func(v Verb) bool { return !slices.Contains(other.Verbs, v) })
	}
	// A side without a deadline expires with its route, so it has nothing against an escalation.
	if q.Deadline == 0 || other.Deadline > 0 && q.OnTimeout == EscalateOnTimeout && other.OnTimeout != EscalateOnTimeout {
		q.OnTimeout = other.OnTimeout
	}
	if other.Deadline > 0 && (q.Deadline == 0 || other.Deadline < q.Deadline) {
		q.Deadline = other.Deadline
	}
	return q
}

// mergeGroups joins groups of the same people, with the higher count; two rules that ask for one dba ask for one. Who asks for
// anyone is content with those whom the other side asks for.
func mergeGroups(a, b []Group) []Group {
	merged := slices.Clone(a)
	joined := make([]bool, len(a)) // each of them once: two groups of the same people on one side want two of them
	for _, g := range b {
		i := 0
		for i < len(a) && (joined[i] || !sameSet(a[i].original(), g.original())) {
			i++
		}
		if i == len(a) {
			merged = append(merged, g)
			continue
		}
		joined[i] = true
		m := &merged[i]
		m.Count = max(m.minCount(), g.minCount())
		refused := func(who string) bool { return slices.Contains(m.Widen, who) && !slices.Contains(g.Widen, who) }
		m.From = slices.DeleteFunc(slices.Clone(m.From), refused) // also who was let in already
		m.Widen = slices.DeleteFunc(slices.Clone(m.Widen), refused)
	}
	return reduceAnyone(merged, max(countWithAnyone(a), countWithAnyone(b)))
}

// reduceAnyone asks for anyone only where not enough people are asked for by name. people is how many a side that asks for anyone wants in all.
func reduceAnyone(groups []Group, people int) []Group {
	i := slices.IndexFunc(groups, Group.isAnyone)
	if i < 0 {
		return groups
	}
	if named := totalCount(groups) - groups[i].minCount(); named < people {
		groups[i].Count = people - named
		return groups
	}
	return slices.Delete(groups, i, i+1)
}

func (g Group) isAnyone() bool { return slices.Equal(g.From, []string{PrincipalAnyone}) }

// countWithAnyone is how many people are needed if anyone is among them; 0 if all are asked for by name.
func countWithAnyone(groups []Group) int {
	if !slices.ContainsFunc(groups, Group.isAnyone) {
		return 0
	}
	return totalCount(groups)
}

// first are those who were asked before a step of the route let others in.
func (g Group) original() []string {
	first := slices.DeleteFunc(slices.Clone(g.From), func(who string) bool { return slices.Contains(g.Widen, who) })
	if len(first) == 0 {
		return g.From
	}
	return first
}

func totalCount(groups []Group) int {
	n := 0
	for _, g := range groups {
		n += g.minCount()
	}
	return n
}

func sameSet(a, b []string) bool {
	in := func(all []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(all, s) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

func union[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// commonPointers are those that both sides cover.
func commonPointers(a, b []string) []string {
	var common []string
	for _, p := range a {
		if covered(p, b) {
			common = append(common, p)
		}
	}
	for _, p := range b {
		if covered(p, a) && !slices.Contains(common, p) {
			common = append(common, p)
		}
	}
	return common
}

// covered reports whether the pointer is one of those above or the same.
func covered(pointer string, above []string) bool {
	return slices.ContainsFunc(above, func(p string) bool { return pointer == p || strings.HasPrefix(pointer, p+"/") })
}
