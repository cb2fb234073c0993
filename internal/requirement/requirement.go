// Package requirement has the type that defines who must agree before a request is decided. A
// policy returns it, and a request stores it.
package requirement

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/timespan"
)

// Requirement defines who must agree before a request is decided, until when, and what people may
// do. Several requirements for one request are merged into one that is as strict as each.
type Requirement struct {
	// Groups must all be satisfied, by different people.
	Groups []Group `json:"groups"`
	// Exclude lists the duties that exclude a person from deciding (separation of duties).
	Exclude []Duty `json:"exclude,omitempty"`
	// Deadline is the maximum time that the request is open, from its creation. 0 leaves it to the
	// route. OnTimeout is what happens then. The default is to expire.
	Deadline  timespan.Duration `json:"deadline,omitempty"`
	OnTimeout OnTimeout         `json:"onTimeout,omitempty"`
	// OnEscalate is what happens if a person escalates. The default is the next step of the route.
	OnEscalate OnEscalate `json:"onEscalate,omitempty"`
	// Routes are the notification routes. All of them are used.
	Routes []string `json:"routes,omitempty"`
	// MinAuth is the minimum strength of authentication of an approver.
	MinAuth Auth `json:"minAuth,omitempty"`
	// Editable lists JSON pointers of arguments, or of the state of a hold, that an approver may
	// change, with everything below them. "" allows all; an empty list allows none.
	Editable []string `json:"editable,omitempty"`
	// EditReasons lists reason codes. An edit must give one of them; if there are none, it needs no
	// code.
	EditReasons []string `json:"editReasons,omitempty"`
	// RejectReasons lists reason codes. A rejection must give one of them; if there are none, it
	// needs a reason or any code.
	RejectReasons []string `json:"rejectReasons,omitempty"`
	// Confirm lists JSON pointers of arguments whose values an approver must type, to show that
	// they know the object of the action.
	Confirm []string `json:"confirm,omitempty"`
	// VisibleTo lists audiences: a person who sees the request belongs to each of them. An audience
	// lists group:, user: or role: and a name, or [Requester]. Empty means everyone in the account.
	VisibleTo [][]string `json:"visibleTo,omitempty"`
	// Sensitive lists JSON pointers of values that are masked until a person reveals them, with
	// everything below them.
	Sensitive []string `json:"sensitive,omitempty"`
	// RememberMax is how long an approval can be remembered as a grant. 0 means never.
	RememberMax timespan.Duration `json:"rememberMax,omitempty"`
	// Undo is how long the last vote can be withdrawn before its decision takes effect. 0 makes a
	// decision effective at once; the maximum is [MaxUndo].
	Undo timespan.Duration `json:"undo,omitempty"`
	// DenyCount is the number of rejections that close the request. The default is 1.
	DenyCount int `json:"denyCount,omitempty"`
	// Verbs are the allowed verbs. The default depends on whether the request is about an action.
	Verbs []Verb `json:"verbs,omitempty"`
}

// MaxUndo is the maximum of Undo.
const MaxUndo = timespan.Duration(10 * time.Minute)

// The limits of a requirement.
const (
	MaxGroups = 20
	MaxCount  = 50 // of people in a group, and of rejections
)

// OnePerson is the default requirement: any one person, who may edit all arguments.
func OnePerson() Requirement {
	return Requirement{Groups: []Group{{From: []string{Anyone}}}, Editable: []string{""}}
}

// MaxOpen returns how long the request may be open, or 0 if the requirement sets no limit.
func (r Requirement) MaxOpen() timespan.Duration {
	if r.OnTimeout == EscalateOnTimeout {
		return 0
	}
	return r.Deadline
}

// IsTyped reports whether an approver must type the name of the object.
func (r Requirement) IsTyped() bool { return len(r.Confirm) > 0 }

// Clone returns a deep copy.
func (r *Requirement) Clone() *Requirement {
	c := *r
	c.Groups = slices.Clone(r.Groups)
	for i := range c.Groups {
		c.Groups[i].From, c.Groups[i].Widen = slices.Clone(c.Groups[i].From), slices.Clone(c.Groups[i].Widen)
	}
	c.Exclude, c.Routes = slices.Clone(r.Exclude), slices.Clone(r.Routes)
	c.Editable, c.Verbs = slices.Clone(r.Editable), slices.Clone(r.Verbs)
	c.EditReasons, c.RejectReasons, c.Confirm = slices.Clone(r.EditReasons), slices.Clone(r.RejectReasons), slices.Clone(r.Confirm)
	c.VisibleTo, c.Sensitive = slices.Clone(r.VisibleTo), slices.Clone(r.Sensitive)
	for i := range c.VisibleTo {
		c.VisibleTo[i] = slices.Clone(c.VisibleTo[i])
	}
	return &c
}

// Group is a group of people of whom some must agree.
type Group struct {
	// From lists the members: group:, user:, role: or oncall: and a name, [Anyone], or [Requester].
	From []string `json:"from"`
	// Count is the number of members that must agree. The default is 1.
	Count int `json:"count,omitempty"`
	// Widen lists who may be added by a step of the route, if the people in From do not decide.
	Widen []string `json:"widen,omitempty"`
	// Stage orders the groups: a group decides after all groups of lower stages are satisfied.
	Stage int `json:"stage,omitempty"`
}

// Names in a group that need no directory.
const (
	Anyone    = "anyone"
	Requester = "requester" // a confirmation, not a second person
)

// People returns how many people of the group must agree.
func (g Group) People() int { return max(1, g.Count) }

// People returns how many people must agree.
func People(groups []Group) int {
	n := 0
	for _, g := range groups {
		n += g.People()
	}
	return n
}

// String returns the group as rules define it: 2 of group:finance or user:ann, later also
// group:managers, in stage 1.
func (g Group) String() string {
	text := strconv.Itoa(g.People()) + " of " + strings.Join(g.From, " or ")
	if len(g.Widen) > 0 {
		text += ", later also " + strings.Join(g.Widen, " or ")
	}
	if g.Stage > 0 {
		text += ", in stage " + strconv.Itoa(g.Stage)
	}
	return text
}

// Names returns the members for people: "finops", "db-oncall or dba".
func (g Group) Names() string {
	names := make([]string, len(g.From))
	for i, who := range g.From {
		names[i] = who
		if kind, name, ok := strings.Cut(who, ":"); ok && kind != "oncall" {
			names[i] = name
		}
	}
	return strings.Join(names, " or ")
}

// Stages returns the stages of the groups in order. Most requirements have one.
func (r Requirement) Stages() []int {
	if len(r.Groups) == 0 {
		return []int{0}
	}
	all := make([]int, len(r.Groups))
	for i, g := range r.Groups {
		all[i] = g.Stage
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (g Group) isAnyone() bool { return slices.Equal(g.From, []string{Anyone}) }

// original returns the members before a step of the route added others.
func (g Group) original() []string {
	if first := sets.Subtract(g.From, g.Widen); len(first) > 0 {
		return first
	}
	return g.From
}
