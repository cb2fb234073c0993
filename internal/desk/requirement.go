package desk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Requirement defines who must agree before a request is decided, and what people may do.
type Requirement struct {
	// Groups must all be satisfied, by different people.
	Groups []Group `json:"groups"`
	// Exclude lists the duties that exclude a person from deciding.
	Exclude []Duty `json:"exclude,omitempty"`
	// Denials is the number of rejections that close the request. The default is 1.
	Denials int `json:"denials,omitempty"`
	// Editable are the JSON pointers of arguments that an approver may change, with everything
	// below them. "" allows all arguments; an empty list allows none.
	Editable []string `json:"editable,omitempty"`
	// MinAuth is the minimum strength of authentication for a vote.
	MinAuth Auth `json:"min_auth,omitempty"`
	// Verbs are the allowed verbs. The default depends on whether the request is about an action.
	Verbs []Verb `json:"verbs,omitempty"`
	// Deadline is the maximum time that the request is open, from its creation. 0 leaves it to the
	// route.
	Deadline Duration `json:"deadline,omitempty"`
	// OnTimeout is what happens at the deadline. The default is to expire.
	OnTimeout OnTimeout `json:"on_timeout,omitempty"`
	// OnEscalate is what happens if a person escalates. The default is the next step of the route.
	OnEscalate OnEscalate `json:"on_escalate,omitempty"`
	// EditReasons are reason codes: an edit must give one of them. Empty means that it needs none.
	EditReasons []string `json:"edit_reasons,omitempty"`
	// Undo is how long a decision is pending: until then the voter can withdraw it. 0 makes a
	// decision effective at once; the maximum is [MaxUndo].
	Undo Duration `json:"undo,omitempty"`
	// VisibleTo lists audiences: a person who sees the request belongs to each of them. An audience
	// lists group:, user: or role: and a name, or [PrincipalRequester]. Empty means everyone in the
	// account.
	VisibleTo [][]string `json:"visible_to,omitempty"`
	// Sensitive are the JSON pointers of values that are masked until a person reveals them, with
	// everything below them.
	Sensitive []string `json:"sensitive,omitempty"`
}

// OnTimeout is what happens when the deadline of a requirement passes without a decision. Waiting
// never approves anything.
type OnTimeout string

// The values of OnTimeout.
const (
	ExpireOnTimeout OnTimeout = "expire"
	// the rest of the route fires now, and the route's own deadline applies
	EscalateOnTimeout OnTimeout = "escalate"
	RejectOnTimeout   OnTimeout = "reject"
	// the answer that the question declares for this case; never for actions
	DefaultOnTimeout OnTimeout = "default"
)

// onTimeouts lists the values, strictest first.
var onTimeouts = []OnTimeout{RejectOnTimeout, ExpireOnTimeout, EscalateOnTimeout, DefaultOnTimeout}

// leniency orders the values. "" and an unknown value count as to expire.
func (o OnTimeout) leniency() int {
	if i := slices.Index(onTimeouts, o); i >= 0 {
		return i
	}
	return ExpireOnTimeout.leniency()
}

// OnEscalate is what happens if a person escalates a request.
type OnEscalate string

// The values of OnEscalate.
const (
	EscalateToNextStep OnEscalate = "next_step"
	// the request closes, and the run receives the reason: neither an approval nor a rejection
	EscalateReturns OnEscalate = "return"
)

// maxOpen returns how long the request may be open, or 0 if the requirement sets no limit.
func (q Requirement) maxOpen() Duration {
	if q.OnTimeout == EscalateOnTimeout {
		return 0
	}
	return q.Deadline
}

// Group is a group of people of whom some must agree.
type Group struct {
	// From lists the members: group:, user:, role: or oncall: and a name, [PrincipalAnyone], or
	// [PrincipalRequester].
	From []string `json:"from"`
	// Count is the number of members that must agree. The default is 1.
	Count int `json:"count,omitempty"`
	// Widen lists who may be added by a step of the route.
	Widen []string `json:"widen,omitempty"`
	// Stage orders the groups: a group decides after all groups of lower stages are satisfied.
	Stage int `json:"stage,omitempty"`
}

// Principals that need no directory, in addition to user: names.
const (
	PrincipalAnyone    = "anyone"
	PrincipalRequester = "requester" // a confirmation, not a second person
)

// minCount returns how many people of the group must agree.
func (g Group) minCount() int { return max(1, g.Count) }

// String returns the group for people: "finops", "db-oncall or dba".
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

// Duty is a role that a person already has in a request.
type Duty string

// The duties that separation of duties can exclude.
const (
	DutyRequester Duty = "requester" // on whose behalf the run asks
	// DutyAuthor is a person whose input shaped the action: see [Subject.Authors].
	DutyAuthor Duty = "author"
	// changed the arguments last; cannot approve, but can reject
	DutyLastEditor Duty = "last_editor"
	// DutyPriorApprover approved an earlier action of the same run.
	DutyPriorApprover Duty = "prior_approver"
)

var duties = []Duty{DutyRequester, DutyAuthor, DutyLastEditor, DutyPriorApprover}

// Auth is the strength of an authentication.
type Auth string

// The strengths of authentication, weakest first.
const (
	AuthNone     Auth = ""
	AuthLinked   Auth = "slack_linked" // a chat account that is linked to the person
	AuthToken    Auth = "token"        // an API key
	AuthSSO      Auth = "sso"
	AuthMFA      Auth = "sso_mfa"
	AuthHardware Auth = "hardware"
)

var authLevels = []Auth{AuthNone, AuthLinked, AuthToken, AuthSSO, AuthMFA, AuthHardware}

// AtLeast reports whether a is as strong as least. An unknown strength counts as the weakest, and
// nothing satisfies it as a minimum.
func (a Auth) AtLeast(least Auth) bool {
	want := slices.Index(authLevels, least)
	return want == 0 || want > 0 && slices.Index(authLevels, a) >= want
}

// Verb is something that people do with a request.
type Verb string

// The verbs. A requirement lists the allowed ones.
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

// The limits of a requirement.
const (
	maxGroups = 20
	maxCount  = 50
)

// OnePerson is the default requirement: any one person, who may edit all arguments.
func OnePerson() Requirement {
	return Requirement{Groups: []Group{{From: []string{PrincipalAnyone}}}, Editable: []string{""}}
}

// Check returns all errors of the requirement.
func (q Requirement) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(q.Groups) == 0 {
		bad("no groups: a requirement needs at least one group")
	}
	if len(q.Groups) > maxGroups {
		bad("%d groups; the maximum is %d", len(q.Groups), maxGroups)
	}
	for i, g := range q.Groups {
		if len(g.From) == 0 {
			bad("group %d is empty", i+1)
		}
		if g.Count < 0 || g.Count > maxCount {
			bad("group %d: count %d is not between 1 and %d", i+1, g.Count, maxCount)
		}
		if g.Stage < 0 {
			bad("group %d: stage %d is negative", i+1, g.Stage)
		}
		for _, who := range slices.Concat(g.From, g.Widen) {
			if !isPrincipal(who) {
				bad("group %d: unknown principal %q: use group:, user:, role: or oncall: and a name, %s or %s", i+1, who, PrincipalAnyone, PrincipalRequester)
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
			bad("editable: %q is not a JSON pointer", p)
		}
	}
	if !slices.Contains(authLevels, q.MinAuth) {
		bad("unknown authentication strength %q", q.MinAuth)
	}
	for _, p := range q.Sensitive {
		if p != "" && p[0] != '/' {
			bad("sensitive: %q is not a JSON pointer", p)
		}
	}
	for _, audience := range q.VisibleTo {
		if len(audience) == 0 {
			bad("visible_to has an empty audience")
		}
		for _, who := range audience {
			if !isPrincipal(who) || who == PrincipalAnyone || strings.HasPrefix(who, "oncall:") {
				bad("visible_to: unknown principal %q: use group:, user: or role: and a name, or %s", who, PrincipalRequester)
			}
		}
	}
	if q.OnTimeout != "" && !slices.Contains(onTimeouts, q.OnTimeout) {
		bad("on_timeout must be expire, escalate, reject or default, not %q", q.OnTimeout)
	}
	if !slices.Contains([]OnEscalate{"", EscalateToNextStep, EscalateReturns}, q.OnEscalate) {
		bad("on_escalate must be next_step or return, not %q", q.OnEscalate)
	}
	if q.OnTimeout == EscalateOnTimeout && q.Deadline == 0 {
		bad("on_timeout: escalate requires a deadline")
	}
	if q.Denials < 0 || q.Denials > maxCount {
		bad("denials %d is not between 1 and %d", q.Denials, maxCount)
	}
	if q.Undo < 0 || q.Undo > MaxUndo {
		bad("undo %s is not between 0 and %s", q.Undo, MaxUndo)
	}
	if q.Deadline < 0 {
		bad("deadline %s is negative", q.Deadline)
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

// Merge returns a requirement that is as strict as both: all groups, the stronger authentication,
// the shorter deadline, and only what both allow.
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
	// A side without a deadline expires with its route, so it does not conflict with an escalation.
	if q.Deadline == 0 || other.Deadline > 0 && other.OnTimeout.leniency() < q.OnTimeout.leniency() {
		q.OnTimeout = other.OnTimeout
	}
	if q.OnEscalate == EscalateReturns {
		q.OnEscalate = other.OnEscalate
	}
	q.EditReasons = union(q.EditReasons, other.EditReasons)
	q.Undo = max(q.Undo, other.Undo)
	q.VisibleTo = mergeAudiences(q.VisibleTo, other.VisibleTo)
	q.Sensitive = union(q.Sensitive, other.Sensitive)
	if other.Deadline > 0 && (q.Deadline == 0 || other.Deadline < q.Deadline) {
		q.Deadline = other.Deadline
	}
	return q
}

// mergeAudiences returns the audiences of both sides: a person must belong to each.
func mergeAudiences(a, b [][]string) [][]string {
	all := slices.Clone(a)
	for _, audience := range b {
		if !slices.ContainsFunc(all, func(other []string) bool { return sameSet(other, audience) }) {
			all = append(all, audience)
		}
	}
	return all
}

// mergeGroups joins groups of the same people and keeps the higher count and the later stage: two
// rules that need one dba need one dba. Anyone is satisfied by the people that the other side
// names.
func mergeGroups(a, b []Group) []Group {
	merged := slices.Clone(a)
	// join each group once: two equal groups on one side need two people
	joined := make([]bool, len(a))
	var places []int // of the groups of b in merged
	for _, g := range b {
		i := 0
		for i < len(a) && (joined[i] || !sameSet(a[i].original(), g.original())) {
			i++
		}
		if i == len(a) {
			merged = append(merged, g)
			places = append(places, len(merged)-1)
			continue
		}
		joined[i] = true
		places = append(places, i)
		m := &merged[i]
		m.Count, m.Stage = max(m.minCount(), g.minCount()), max(m.Stage, g.Stage)
		refused := func(who string) bool { return slices.Contains(m.Widen, who) && !slices.Contains(g.Widen, who) }
		// including members that were already added
		m.From = slices.DeleteFunc(slices.Clone(m.From), refused)
		m.Widen = slices.DeleteFunc(slices.Clone(m.Widen), refused)
	}
	// A later stage of one group can move it behind groups that waited for it.
	for range merged {
		keepOrder(merged, a, nil)
		keepOrder(merged, b, places)
	}
	return reduceAnyone(merged, max(countWithAnyone(a), countWithAnyone(b)))
}

// keepOrder moves merged groups to later stages, so that each waits for those that it waited for
// before. places are the indexes of groups in merged; nil means the same ones.
func keepOrder(merged, groups []Group, places []int) {
	place := func(i int) *Group {
		if places != nil {
			i = places[i]
		}
		return &merged[i]
	}
	for i, earlier := range groups {
		for k, later := range groups {
			if earlier.Stage < later.Stage && place(k).Stage <= place(i).Stage {
				place(k).Stage = place(i).Stage + 1
			}
		}
	}
}

// reduceAnyone keeps a group of anyone only if the named groups have too few people. people is the
// total that a side with anyone requires. Groups in several stages are kept: a named person may
// decide in another stage than anyone.
func reduceAnyone(groups []Group, people int) []Group {
	i := slices.IndexFunc(groups, Group.isAnyone)
	if i < 0 || slices.ContainsFunc(groups, func(g Group) bool { return g.Stage != groups[i].Stage }) {
		return groups
	}
	if named := totalCount(groups) - groups[i].minCount(); named < people {
		groups[i].Count = people - named
		return groups
	}
	return slices.Delete(groups, i, i+1)
}

func (g Group) isAnyone() bool { return slices.Equal(g.From, []string{PrincipalAnyone}) }

// countWithAnyone returns the number of required people if anyone is among the groups, and 0 if all
// groups are named.
func countWithAnyone(groups []Group) int {
	if !slices.ContainsFunc(groups, Group.isAnyone) {
		return 0
	}
	return totalCount(groups)
}

// original returns the members before a step of the route added others.
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

// commonPointers returns the pointers that both sides cover.
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

// covered reports whether a pointer is equal to or below one of the given pointers.
func covered(pointer string, above []string) bool {
	return slices.ContainsFunc(above, func(p string) bool { return pointer == p || strings.HasPrefix(pointer, p+"/") })
}
