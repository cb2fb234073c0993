package policy

import (
	"slices"
	"strings"
)

// Requirement says of whom a decision is asked, until when, and what else must hold. Several rules that ask are merged into
// one requirement that is at least as strict as each.
type Requirement struct {
	// Groups must all be satisfied, each by its own people: one person counts once.
	Groups []Group `json:"groups"`
	// Exclude names those whose own yes does not count (separation of duties): requester, author, last_editor, prior_approver.
	Exclude []string `json:"exclude,omitempty"`
	// Deadline is how long the request is open, OnTimeout what happens then.
	Deadline  Duration  `json:"deadline"`
	OnTimeout OnTimeout `json:"onTimeout"`
	// Routes are the ways on which people are told; each of them is used.
	Routes []string `json:"routes,omitempty"`
	// MinAuth is the least strength of authentication of whoever decides.
	MinAuth Auth `json:"minAuth,omitempty"`
	// Editable lists JSON pointers of arguments that the approver may change, with all that is below them. Empty: none.
	Editable []string `json:"editable,omitempty"`
	// RememberMax is for how long the answer may be turned into a grant; zero is never.
	RememberMax Duration `json:"rememberMax"`
	// DenyCount is how many people have to say no until it is a no.
	DenyCount int `json:"denyCount"`
	// Show lists what must be shown to the people who decide: JSON pointers of arguments, or names of evidence.
	Show []string `json:"show,omitempty"`
	// Verbs are what people may do with the request; none given is all that there is.
	Verbs []string `json:"verbs,omitempty"`
}

// Group is a number of people out of some: any Count of those that From names.
type Group struct {
	// From lists group:x, user:x, role:x, oncall:x, requester or anyone. It is sorted.
	From  []string `json:"from"`
	Count int      `json:"count"`
	// Widen lists who may be let in by a step of the route, if those in From do not decide. It is sorted.
	Widen []string `json:"widen,omitempty"`
}

// String is the group in words: 2 of group:finance or user:ann, later also group:managers.
func (g Group) String() string {
	text := itoa(g.Count) + " of " + strings.Join(g.From, " or ")
	if len(g.Widen) > 0 {
		text += ", later also " + strings.Join(g.Widen, " or ")
	}
	return text
}

// The verbs that every request has: nobody can be asked who cannot say yes, or cannot say no.
const (
	verbApprove = "approve"
	verbReject  = "reject"
)

// verbs are all that people can do with a request to approve an action.
var verbs = []string{verbApprove, "edit", verbReject, "ask", "claim", "delegate", "snooze", "extend", "escalate", "escape"}

// allowed are the verbs that a requirement lets people use.
func (r *Requirement) allowedVerbs() []string {
	if len(r.Verbs) == 0 {
		return verbs
	}
	return r.Verbs
}

// OnTimeout is what happens when nobody has decided in time. Nothing is ever approved by waiting.
type OnTimeout string

// What can happen after the deadline. Expire is the stricter.
const (
	Expire   OnTimeout = "expire"
	Escalate OnTimeout = "escalate"
)

// Auth is how sure it is who decides; "" is whatever counts at all.
type Auth string

// The strengths of authentication, from the weakest to the strongest.
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

// merge returns what satisfies both.
func merge(a, b *Requirement) *Requirement {
	if a == nil {
		return b.clone()
	}
	m := a.clone()
	m.mergeGroups(b.Groups)
	m.Exclude = union(a.Exclude, b.Exclude)
	m.Deadline = min(a.Deadline, b.Deadline)
	if b.OnTimeout != Escalate {
		m.OnTimeout = Expire
	}
	m.Routes = union(a.Routes, b.Routes)
	if b.MinAuth.requiredLevel() > a.MinAuth.requiredLevel() {
		m.MinAuth = b.MinAuth
	}
	m.Editable = intersectPointers(a.Editable, b.Editable)
	m.RememberMax = min(a.RememberMax, b.RememberMax)
	m.DenyCount = min(a.DenyCount, b.DenyCount)
	m.Show = union(a.Show, b.Show)
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
	c.Editable, c.Show, c.Verbs = slices.Clone(r.Editable), slices.Clone(r.Show), slices.Clone(r.Verbs)
	return &c
}

// addGroups keeps the higher count where two rules ask the same people, and lets in later whom both permit. Two groups of one rule want different people, also
// if their names were filled in so that they are the same: each is joined with one at most.
func (r *Requirement) mergeGroups(groups []Group) {
	own := len(r.Groups)
	joined := make([]bool, own)
	for _, g := range groups {
		i := 0
		for i < own && (joined[i] || !slices.Equal(r.Groups[i].From, g.From)) {
			i++
		}
		if i == own {
			r.Groups = append(r.Groups, Group{From: slices.Clone(g.From), Count: g.Count, Widen: slices.Clone(g.Widen)})
			continue
		}
		have := &r.Groups[i]
		joined[i], have.Count, have.Widen = true, max(have.Count, g.Count), intersect(have.Widen, g.Widen)
	}
}

// settleAnyone asks for anyone only where rules do not ask for enough people by name: they are somebody. people is how many a rule that asks for anyone wants in
// all: "a dba, and anyone" are two, and the dba is one of them.
func (r *Requirement) reduceAnyone(people int) {
	i := slices.IndexFunc(r.Groups, Group.isAnyone) // there is one at most: a rule names the same people once
	if i < 0 {
		return
	}
	anyone := &r.Groups[i]
	//mutate:merge-people-not-seats
	if anyone.Count = people - (totalCount(r.Groups) - anyone.Count); anyone.Count <= 0 {
		r.Groups = slices.Delete(r.Groups, i, i+1)
	}
}

func (g Group) isAnyone() bool { return slices.Equal(g.From, []string{anyone}) }

// totalCount is how many people are needed.
func totalCount(groups []Group) int {
	n := 0
	for _, g := range groups {
		n += g.Count
	}
	return n
}

// union keeps the order in which words come first.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// intersect keeps the words of a that are in b; nil if there are none.
func intersect(a, b []string) []string {
	var common []string
	for _, word := range a {
		if slices.Contains(b, word) {
			common = append(common, word)
		}
	}
	return common
}

// covers reports whether a change at pointer is allowed by one of the pointers: its own, or one above it.
func covers(pointers []string, pointer string) bool {
	return slices.ContainsFunc(pointers, func(p string) bool {
		return pointer == p || strings.HasPrefix(pointer, p+"/")
	})
}

// intersectPointers returns the pointers that are allowed on both sides.
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
