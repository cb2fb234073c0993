package policy

import (
	"slices"
	"strings"
)

// Requirement defines who must approve, until when, and under which conditions. Several rules that
// ask are merged into one requirement that is at least as strict as each.
type Requirement struct {
	// Groups must all be satisfied, by different people.
	Groups []Group `json:"groups"`
	// Exclude lists the duties that exclude a person (separation of duties): requester, author,
	// last_editor, prior_approver.
	Exclude []string `json:"exclude,omitempty"`
	// Deadline is how long the request is open. OnTimeout is what happens then.
	Deadline  Duration  `json:"deadline"`
	OnTimeout OnTimeout `json:"onTimeout"`
	// Routes are the notification routes. All of them are used.
	Routes []string `json:"routes,omitempty"`
	// MinAuth is the minimum strength of authentication of an approver.
	MinAuth Auth `json:"minAuth,omitempty"`
	// OnEscalate is what happens if a person escalates. "" is [NextStep].
	OnEscalate OnEscalate `json:"onEscalate,omitempty"`
	// Editable lists JSON pointers of arguments, or of the state of a hold, that the approver may
	// change, including everything below them. Empty means none.
	Editable []string `json:"editable,omitempty"`
	// EditReasons lists the codes of which an edit must give one. Empty means that an edit needs no
	// code.
	EditReasons []string `json:"editReasons,omitempty"`
	// VisibleTo lists audiences: a person who sees the request belongs to each of them. An audience
	// lists group:x, user:x, role:x or requester. Empty means everyone in the account.
	VisibleTo [][]string `json:"visibleTo,omitempty"`
	// Sensitive lists JSON pointers of values that are masked until a person reveals them,
	// including everything below them.
	Sensitive []string `json:"sensitive,omitempty"`
	// RememberMax is how long an approval can be remembered as a grant. Zero means never.
	RememberMax Duration `json:"rememberMax"`
	// Undo is how long the last vote can be withdrawn before its decision takes effect. Zero means
	// that a decision takes effect at once.
	Undo Duration `json:"undo,omitempty"`
	// DenyCount is the number of rejections that close the request.
	DenyCount int `json:"denyCount"`
	// Verbs are the allowed verbs. Empty means all.
	Verbs []string `json:"verbs,omitempty"`
}

// Group requires Count people of those in From.
type Group struct {
	// From lists group:x, user:x, role:x, oncall:x, requester or anyone. It is sorted.
	From  []string `json:"from"`
	Count int      `json:"count"`
	// Widen lists who may be added by a step of the route, if the people in From do not decide. It
	// is sorted.
	Widen []string `json:"widen,omitempty"`
	// Stage orders the groups: a group decides after all groups of lower stages are satisfied.
	Stage int `json:"stage,omitempty"`
}

// String returns the group for people: 2 of group:finance or user:ann, later also group:managers,
// in stage 1.
func (g Group) String() string {
	text := itoa(g.Count) + " of " + strings.Join(g.From, " or ")
	if len(g.Widen) > 0 {
		text += ", later also " + strings.Join(g.Widen, " or ")
	}
	if g.Stage > 0 {
		text += ", in stage " + itoa(g.Stage)
	}
	return text
}

// The verbs that every request allows: approvers must be able to approve and to reject.
const (
	verbApprove = "approve"
	verbReject  = "reject"
)

// verbs are all verbs of a request to approve an action.
var verbs = []string{verbApprove, "edit", verbReject, "ask", "claim", "delegate", "snooze", "extend", "escalate", "escape"}

// allowedVerbs returns the verbs that the requirement allows.
func (r *Requirement) allowedVerbs() []string {
	if len(r.Verbs) == 0 {
		return verbs
	}
	return r.Verbs
}

// OnTimeout is what happens at the deadline. Waiting never approves anything.
type OnTimeout string

// The values of OnTimeout, strictest first.
const (
	RejectOnTimeout OnTimeout = "reject"
	Expire          OnTimeout = "expire"
	Escalate        OnTimeout = "escalate"
	// DefaultAnswer gives the answer that the question declares for this case. It is never used for
	// approvals, gates, holds and effects in doubt, which expire instead.
	DefaultAnswer OnTimeout = "default"
)

var onTimeouts = []OnTimeout{RejectOnTimeout, Expire, Escalate, DefaultAnswer}

// leniency orders the values. An unknown value counts as Expire.
func (o OnTimeout) leniency() int {
	if i := slices.Index(onTimeouts, o); i >= 0 {
		return i
	}
	return Expire.leniency()
}

// OnEscalate is what happens if a person escalates a request.
type OnEscalate string

// The values of OnEscalate.
const (
	// NextStep asks the people of the next step of the route.
	NextStep OnEscalate = "next_step"
	// ReturnToRun closes the request and gives the run the reason. That is neither an approval nor
	// a rejection.
	ReturnToRun OnEscalate = "return"
)

// Auth is a strength of authentication. "" is any.
type Auth string

// The strengths of authentication, weakest first.
const (
	AuthSlackLinked Auth = "slack_linked" // a chat account that is linked to a person
	AuthToken       Auth = "token"        // an API key
	AuthSSO         Auth = "sso"          // signed in
	AuthSSOMFA      Auth = "sso_mfa"      // signed in, with a second factor
	AuthHardware    Auth = "hardware"     // with a key that signs what was shown
)

var auths = []string{string(AuthSlackLinked), string(AuthToken), string(AuthSSO), string(AuthSSOMFA), string(AuthHardware)}

func (a Auth) level() int { return slices.Index(auths, string(a)) + 1 }

func (a Auth) requiredLevel() int {
	if level := a.level(); level > 0 || a == "" {
		return level
	}
	return len(auths) + 1
}

// merge returns a requirement that is as strict as both.
func merge(a, b *Requirement) *Requirement {
	if a == nil {
		return b.clone()
	}
	m := a.clone()
	m.mergeGroups(b.Groups)
	m.Exclude = union(a.Exclude, b.Exclude)
	m.Deadline = min(a.Deadline, b.Deadline)
	if b.OnTimeout.leniency() < a.OnTimeout.leniency() {
		m.OnTimeout = b.OnTimeout
	}
	if a.OnEscalate == ReturnToRun {
		m.OnEscalate = b.OnEscalate
	}
	m.Routes = union(a.Routes, b.Routes)
	if b.MinAuth.requiredLevel() > a.MinAuth.requiredLevel() {
		m.MinAuth = b.MinAuth
	}
	m.Editable = intersectPointers(a.Editable, b.Editable)
	m.RememberMax = min(a.RememberMax, b.RememberMax)
	m.Undo = max(a.Undo, b.Undo)
	m.DenyCount = min(a.DenyCount, b.DenyCount)
	m.EditReasons = union(a.EditReasons, b.EditReasons)
	m.VisibleTo = addAudiences(m.VisibleTo, b.VisibleTo)
	m.Sensitive = union(a.Sensitive, b.Sensitive)
	slices.Sort(m.Sensitive)
	if len(a.Verbs)+len(b.Verbs) > 0 {
		m.Verbs = intersect(a.allowedVerbs(), b.allowedVerbs())
	}
	return m
}

func (r *Requirement) clone() *Requirement {
	c := *r
	c.Groups = slices.Clone(r.Groups)
	for i := range c.Groups {
		c.Groups[i].From, c.Groups[i].Widen = slices.Clone(c.Groups[i].From), slices.Clone(c.Groups[i].Widen)
	}
	c.Exclude, c.Routes = slices.Clone(r.Exclude), slices.Clone(r.Routes)
	c.Editable, c.EditReasons, c.Verbs = slices.Clone(r.Editable), slices.Clone(r.EditReasons), slices.Clone(r.Verbs)
	c.VisibleTo, c.Sensitive = slices.Clone(r.VisibleTo), slices.Clone(r.Sensitive)
	for i := range c.VisibleTo {
		c.VisibleTo[i] = slices.Clone(c.VisibleTo[i])
	}
	return &c
}

// addAudiences adds audiences that are not implied yet: a person must belong to each.
func addAudiences(all, more [][]string) [][]string {
	for _, audience := range more {
		if !impliesAudience(all, audience) {
			all = append(all, slices.Clone(audience))
		}
	}
	return all
}

// impliesAudience reports whether everyone who belongs to all audiences also belongs to audience.
func impliesAudience(all [][]string, audience []string) bool {
	return slices.ContainsFunc(all, func(other []string) bool { return len(subtract(other, audience)) == 0 })
}

// mergeGroups keeps the higher count and the later stage for equal groups, and permits widening
// only to names that both permit. Two groups of one rule need different people, even if their
// expanded names are equal. So each group is joined at most once.
func (r *Requirement) mergeGroups(groups []Group) {
	own := len(r.Groups)
	first := slices.Clone(r.Groups)
	joined := make([]bool, own)
	var places []int // of groups in r.Groups
	for _, g := range groups {
		i := 0
		for i < own && (joined[i] || !slices.Equal(r.Groups[i].From, g.From)) {
			i++
		}
		if i == own {
			r.Groups = append(r.Groups, Group{From: slices.Clone(g.From), Count: g.Count, Widen: slices.Clone(g.Widen), Stage: g.Stage})
			places = append(places, len(r.Groups)-1)
			continue
		}
		have := &r.Groups[i]
		joined[i], have.Count, have.Widen = true, max(have.Count, g.Count), intersect(have.Widen, g.Widen)
		have.Stage = max(have.Stage, g.Stage)
		places = append(places, i)
	}
	// A later stage of one group can move it behind groups that waited for it.
	for range r.Groups {
		keepOrder(r.Groups, first, nil)
		keepOrder(r.Groups, groups, places)
	}
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
// total that a rule with anyone requires: "a dba, and anyone" are two people, and the dba is one of
// them. Groups in several stages are kept: a named person may decide in another stage than anyone.
func (r *Requirement) reduceAnyone(people int) {
	i := slices.IndexFunc(r.Groups, Group.isAnyone) // at most one: a rule has no duplicate groups
	if i < 0 || slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Stage != r.Groups[i].Stage }) {
		return
	}
	anyone := &r.Groups[i]
	//mutate:merge-people-not-seats
	if anyone.Count = people - (totalCount(r.Groups) - anyone.Count); anyone.Count <= 0 {
		r.Groups = slices.Delete(r.Groups, i, i+1)
	}
}

func (g Group) isAnyone() bool { return slices.Equal(g.From, []string{anyone}) }

// totalCount returns the number of required people.
func totalCount(groups []Group) int {
	n := 0
	for _, g := range groups {
		n += g.Count
	}
	return n
}

// union keeps the order of first occurrence.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// intersect returns the elements of a that are in b, or nil.
func intersect(a, b []string) []string {
	var common []string
	for _, word := range a {
		if slices.Contains(b, word) {
			common = append(common, word)
		}
	}
	return common
}

// covers reports whether a change at pointer is allowed by an equal pointer or one above it.
func covers(pointers []string, pointer string) bool {
	return slices.ContainsFunc(pointers, func(p string) bool {
		return pointer == p || strings.HasPrefix(pointer, p+"/")
	})
}

// intersectPointers returns the pointers that both sides allow.
func intersectPointers(a, b []string) []string {
	var both []string
	for _, p := range a {
		if covers(b, p) {
			both = append(both, p)
		}
	}
	for _, p := range b {
		if covers(a, p) && !slices.Contains(both, p) {
			both = append(both, p)
		}
	}
	slices.Sort(both)
	return both
}
