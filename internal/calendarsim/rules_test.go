package calendarsim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/timespan"
)

const account = "acme"

// rulesText is the policy of the executors. The model has the same rules in Go: see requirementOf.
const rulesText = `
version: calendarsim
default: ask
defaults:
  ask: {groups: [{from: ["group:ops"]}], separation_of_duties: [requester], deadline: 72h, route: wall, editable: ["/note"]}
rules:
- id: inquiries
  when: req.kind == "calendarsim-inquiry"
  then: ask
  ask: {groups: [{from: [anyone]}], separation_of_duties: [], deadline: 90d, route: wall}
- id: small
  when: req.tool == "pay" && args.cents <= 2000
  then: allow
  limit: {amount: args.cents, max: 2500, window: 24h}
- id: pay
  when: req.tool == "pay" && args.cents > 2000
  then: ask
  reason: money leaves the house
  ask: {groups: [{from: ["group:payers"]}], editable: ["/cents", "/note"], deadline: 96h, route: sun}
- id: large
  when: req.tool == "pay" && args.cents > 100000
  then: ask
  reason: a lot of money leaves the house
  ask:
    groups: [{from: ["group:payers"], count: 2}, {from: ["group:finops"]}]
    separation_of_duties: [requester, last_editor]
    editable: ["/cents", "/note"]
    deadline: 96h
    route: sun
- id: mails
  when: req.tool == "mail"
  then: ask
  reason: one mail in two days is enough for one pair of eyes
  limit: {max: 1, window: 48h, by: [requester]}
  ask: {groups: [{from: ["group:ops"], count: 2}]}
- id: post
  when: req.tool == "post"
  then: allow
- id: posts
  when: req.tool == "post"
  then: deny
  reason: two a day are enough
  limit: {max: 2, window: 24h, by: [requester]}
- id: nowhere
  when: req.tool == "pay" && args.to == "nowhere"
  then: deny
  reason: nobody is paid there
- id: drop
  when: req.tool == "drop"
  then: ask
  reason: what is dropped does not come back
  ask:
    groups: [{from: ["group:dba", "group:ops"]}, {from: ["group:dba"]}]
    separation_of_duties: [requester, prior_approver]
    editable: []
    deny_count: 2
    deadline: 240h
    route: business
`

// The limits of the rules small, mails and posts.
const (
	smallMost   = 2500
	smallWindow = 24 * time.Hour
	mailMost    = 1
	mailWindow  = 48 * time.Hour
	postMost    = 2
	postWindow  = 24 * time.Hour
)

// modelGroup is a required group in the model.
type modelGroup struct {
	from  []string
	count int
}

// modelRequirement is what the rules require for an action.
type modelRequirement struct {
	rule            string // "" if no rule matches
	deny            bool
	parties         []modelGroup
	notRequester    bool
	notLastEditor   bool
	notPrior        bool
	denials         int
	editable        []string
	limit           time.Duration // the rule's deadline
	route           string
	perhapsBySpends bool // allowed unless the spending limit is exceeded
	unlessOften     bool // allowed unless the rate limit is exceeded
}

// requirementOf is the policy, written in Go.
func requirementOf(o order) modelRequirement {
	usual := modelRequirement{parties: []modelGroup{{[]string{"group:ops"}, 1}}, notRequester: true, denials: 1, editable: []string{"note"}, limit: 72 * time.Hour, route: "wall"}
	pay := modelRequirement{
		rule: "pay", parties: []modelGroup{{[]string{"group:payers"}, 1}}, notRequester: true, denials: 1, editable: []string{"cents", "note"}, limit: 96 * time.Hour, route: "sun",
	}
	switch {
	case o.Action == "post":
		return modelRequirement{rule: "post", unlessOften: true}
	case o.Action == "pay" && o.To == "nowhere":
		return modelRequirement{rule: "nowhere", deny: true}
	case o.Action == "pay" && o.Cents <= 2000:
		usual.rule, usual.perhapsBySpends = "small", true
		return usual
	case o.Action == "pay" && o.Cents > 100000:
		pay.rule, pay.notLastEditor = "large", true
		pay.parties = []modelGroup{{[]string{"group:payers"}, 2}, {[]string{"group:finops"}, 1}}
		return pay
	case o.Action == "pay":
		return pay
	case o.Action == "drop":
		return modelRequirement{
			rule: "drop", parties: []modelGroup{{[]string{"group:dba", "group:ops"}, 1}, {[]string{"group:dba"}, 1}}, notRequester: true, notPrior: true, denials: 2,
			limit: 240 * time.Hour, route: "business",
		}
	}
	return usual
}

// often returns what the rules require for a mail if there was one before.
func (d modelRequirement) often() modelRequirement {
	d.rule, d.parties = "mails", []modelGroup{{[]string{"group:ops"}, 2}}
	return d
}

// merge returns the stricter of the current requirement and that of an edit. Only payments can be
// edited in a way that the rules use. A mail may have exceeded the rate limit by then.
func (d modelRequirement) merge(edited modelRequirement) modelRequirement {
	switch edited.rule {
	case "large":
		d.parties, d.notLastEditor, d.rule = edited.parties, true, "large"
	case "mails":
		d = d.often()
	}
	return d
}

// plan is a route in the model.
type plan struct {
	business  *office
	follow    []*office
	steps     []planned
	expire    time.Duration
	extension time.Duration // the latest deadline, from the creation
	grace     time.Duration // how long people have after an outage in which it would have expired
}

// planned is a step of it.
type planned struct {
	at      time.Duration
	kind    desk.NoticeKind
	region  bool // to the region that is open
	targets []string
	unseen  bool // skipped if viewed or claimed
}

// routesOf are the routes for the executors, and the same for the model.
func routesOf(all []*office) (map[string]desk.Route, map[string]plan) {
	var regions []hours.Region
	for _, p := range all {
		regions = append(regions, p.region())
	}
	routes := []desk.Route{
		{Name: "wall", Cap: hrs(72), Grace: hrs(0.25), Steps: []desk.Step{
			{Notify: []string{"inbox"}},
			{At: hrs(0.5), Remind: []string{"inbox"}, SkipIf: []desk.SkipCondition{desk.SkipIfViewed, desk.SkipIfClaimed}},
			{At: hrs(2), Page: []string{"oncall:ops"}, Severity: "error"},
			{At: hrs(4), Notify: []string{"group:managers"}, Widen: []string{"group:managers"}},
			{At: hrs(24), Expire: "stale"},
		}},
		{Name: "sun", Regions: regions, MinRemaining: timespan.Duration(minRemaining), Cap: hrs(96), Steps: []desk.Step{
			{Notify: []string{"region"}},
			{At: hrs(1), Remind: []string{"region"}},
			{At: hrs(2), Page: []string{"oncall:payers"}, Severity: "error"},
			{At: hrs(6), Notify: []string{"region", "group:finops"}},
			{At: hrs(80), Expire: "stale"},
		}},
		{Name: "business", Regions: regions[:1], Clock: desk.BusinessClock, Cap: hrs(240), Steps: []desk.Step{
			{Notify: []string{"approvers"}},
			{At: hrs(1), Remind: []string{"approvers"}, SkipIf: []desk.SkipCondition{desk.SkipIfViewed, desk.SkipIfClaimed}},
			{At: hrs(3), Page: []string{"oncall:dba"}, Severity: "critical"},
			{At: hrs(16), Expire: "stale"},
		}},
	}
	byName := make(map[string]desk.Route)
	for _, r := range routes {
		byName[r.Name] = r
	}
	byName["default"] = byName["wall"]
	plans := map[string]plan{
		"wall": {expire: 24 * time.Hour, extension: 72 * time.Hour, grace: 15 * time.Minute, steps: []planned{
			{kind: desk.NoticeNotify, targets: []string{"inbox"}},
			{at: 30 * time.Minute, kind: desk.NoticeRemind, targets: []string{"inbox"}, unseen: true},
			{at: 2 * time.Hour, kind: desk.NoticePage, targets: []string{"oncall:ops"}},
			{at: 4 * time.Hour, kind: desk.NoticeNotify, targets: []string{"group:managers"}},
		}},
		"sun": {follow: all, expire: 80 * time.Hour, extension: 96 * time.Hour, steps: []planned{
			{kind: desk.NoticeNotify, region: true},
			{at: time.Hour, kind: desk.NoticeRemind, region: true},
			{at: 2 * time.Hour, kind: desk.NoticePage, targets: []string{"oncall:payers"}},
			{at: 6 * time.Hour, kind: desk.NoticeNotify, region: true, targets: []string{"group:finops"}},
		}},
		"business": {business: all[0], expire: 16 * time.Hour, extension: 240 * time.Hour, steps: []planned{
			{kind: desk.NoticeNotify, targets: []string{"group:dba", "group:ops"}},
			{at: time.Hour, kind: desk.NoticeRemind, targets: []string{"group:dba", "group:ops"}, unseen: true},
			{at: 3 * time.Hour, kind: desk.NoticePage, targets: []string{"oncall:dba"}},
		}},
	}
	return byName, plans
}

// directory knows the current group members.
type directory struct {
	mu     sync.Mutex
	groups map[string][]string
	moved  map[string]bool // people who have left a group, temporarily or permanently
}

func (d *directory) hasMoved(person string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.moved[person]
}

// Member reports whether a person is in a group now.
func (d *directory) Member(who, person string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.groups[who], person), nil
}

func (d *directory) members(who string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.groups[who])
}

func (d *directory) copied() *directory {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &directory{groups: maps.Clone(d.groups)} // the lists are never changed in place
}

func (d *directory) leave(who, person string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[who] = slices.DeleteFunc(slices.Clone(d.groups[who]), func(p string) bool { return p == person })
	if d.moved == nil {
		d.moved = make(map[string]bool)
	}
	d.moved[person] = true
}

func (d *directory) join(who, person string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[who] = append(slices.Clone(d.groups[who]), person)
}
