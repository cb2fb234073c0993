package analytics

import (
	"slices"
	"time"
)

// Report is a report on the requests of an account in a period.
//
// Numbers are exact, except two that are approximated for large numbers, so that memory does not
// grow with the history: see [Percentiles] and [VoteStats.MaxPerMinute]. At most 5000 kinds, rules,
// actions and people (64 channels) have their own rows. Others are counted in a row named "(all
// others)". The person in the query always has a row.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// RetainedSince, if set, is later than Since: requests of runs that ended before it may have
	// been deleted and are not counted.
	RetainedSince *time.Time `json:"retainedSince,omitempty"`
	// All covers every request created in the period. The rows below divide it by kind, rule and
	// action.
	All      Row   `json:"all"`
	ByKind   []Row `json:"byKind"`
	ByRule   []Row `json:"byRule"`
	ByAction []Row `json:"byAction"`
	// ByDay and ByHour count the decisions on these requests by the time of the decision, in the
	// zone of the report. ByDay has the days that begin in the period, at most the last 366. ByHour
	// has the 24 hours of the day.
	ByDay  []DecisionCounts `json:"byDay"`
	ByHour []DecisionCounts `json:"byHour"`
	// Channels and People count votes, not requests: several people may have to agree.
	Channels []VoteStats `json:"channels"`
	People   []VoteStats `json:"people"`
	// Proposals are rules that the history supports.
	Proposals []Proposal `json:"proposals"`
	// Hidden is the number of rows of people that the caller may not see.
	Hidden int `json:"hidden,omitempty"`
}

// Row has the numbers of some requests.
type Row struct {
	Name      string `json:"name"`
	Requests  int    `json:"requests"`
	Open      int    `json:"open"`
	Approved  int    `json:"approved"`
	Edited    int    `json:"edited"` // of the approved
	Rejected  int    `json:"rejected"`
	Answered  int    `json:"answered"`
	Expired   int    `json:"expired"`
	Abandoned int    `json:"abandoned"`
	Withdrawn int    `json:"withdrawn"`
	// Clarified is the number of requests with a clarification, Paged the number with a page.
	Clarified int `json:"clarified"`
	Paged     int `json:"paged"`
	// ToView and ToDecide count from the creation. WaitedHours is the total waiting time of runs,
	// in hours.
	ToView      Percentiles `json:"toView"`
	ToDecide    Percentiles `json:"toDecide"`
	WaitedHours float64     `json:"waitedHours"`
	// OldestOpen is the age of the oldest open request, in seconds.
	OldestOpen float64 `json:"oldestOpenSeconds"`
}

// Percentiles are percentiles in seconds. With more than 512 values they may be off by 1/128.
type Percentiles struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// VoteStats has the numbers of the votes of a person or on a channel.
type VoteStats struct {
	Name      string  `json:"name"`
	Votes     int     `json:"votes"`
	Approvals float64 `json:"approvedPercent"` // of approvals and rejections; 0 if there are none
	Share     float64 `json:"sharePercent"`    // of all votes
	// ToDecide counts from the creation, Reading from the first view.
	ToDecide Percentiles `json:"toDecide"`
	Reading  Percentiles `json:"reading"`
	// Unviewed is the number of votes without a view. TooFast is the share of votes that were
	// faster than reading speed. MaxPerMinute is the maximum within a minute. Together they
	// indicate rubber-stamping; none of them alone proves it. With more than 16384 votes,
	// MaxPerMinute is the maximum within two consecutive half minutes. It is then never too high,
	// and at least half of the true value unless there are votes in more than 32768 different half
	// minutes (a channel: a million).
	Unviewed     int     `json:"unviewed"`
	TooFast      float64 `json:"tooFastPercent"`
	MaxPerMinute int     `json:"maxPerMinute"`
	// OutOfHours is the share of votes between 20:00 and 7:00 and on weekends, in the zone of the
	// report.
	OutOfHours float64 `json:"outOfHoursPercent"`
	Suspect    bool    `json:"suspect"`
}

// Proposal is a rule that the history supports: always approved, never edited, by several people
// who read the requests.
type Proposal struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"` // the rules that ask now, separated by commas
	// Approved is the number of approvals, Deciders the number of people, WaitedHours the total
	// waiting time.
	Approved    int     `json:"approved"`
	Deciders    int     `json:"deciders"`
	WaitedHours float64 `json:"waitedHours"`
	Text        string  `json:"text"`
}

const (
	readingSpeed     = 600 // words per minute: faster than people read
	minVotes         = 20  // minimum number of approvals and rejections for suspicion
	suspectApprovals = 98.0
	suspectFast      = 30.0

	proposeAfter    = 50 // approvals
	proposeDeciders = 2
)

// Query selects the content of a report.
type Query struct {
	// Since and Until select requests by creation time. A zero Until means now.
	Since, Until time.Time
	// Zone is the time zone of the people. Nil means UTC.
	Zone *time.Location
	// Person, if set, is the only person whose name is shown.
	Person string
	// HideRestricted leaves out requests that only some people may see.
	HideRestricted bool
	// Retention is how long requests are kept after their runs end. 0 means without limit.
	Retention time.Duration
}

// Collector collects index entries in any order and computes a report. Its memory depends on the
// number of different names, not on the number of requests.
type Collector struct {
	query  Query
	now    time.Time
	limits limits

	all                   rowCounter
	times                 *timeCounter
	kinds, rules, actions groups[rowCounter]
	channels, people      groups[voteCounter]
	candidates            map[candidate]*candidateHistory
	votes, deciders       int
}

// limits are the limits of a collector.
type limits struct {
	names       int // rows per group
	channels    int
	durations   int // durations kept one by one
	voteTimes   int // vote times kept one by one
	halfMinutes int // half minutes with votes
	deciders    int // total, over all candidates
	days        int // days with their own row
}

// defaultLimits are the limits for reports over years. The documentation of [Report], [Percentiles]
// and [VoteStats] has these numbers.
var defaultLimits = limits{names: 5000, channels: 64, durations: 512, voteTimes: 16384, halfMinutes: 32768, deciders: 100_000, days: 366}

// channelFactor is the number of half minutes of a channel relative to a person. A year has a
// million half minutes.
const channelFactor = 32

// NewCollector returns a collector for a query. now is the time for open requests.
func NewCollector(query Query, now time.Time) *Collector {
	return newCollector(query, now, defaultLimits)
}

func newCollector(query Query, now time.Time, l limits) *Collector {
	if query.Until.IsZero() {
		query.Until = now
	}
	if query.Zone == nil {
		query.Zone = time.UTC
	}
	row := func() *rowCounter { return newRowCounter(l) }
	return &Collector{
		query: query, now: now, limits: l, all: *row(), times: newTimeCounter(query, l.days), candidates: make(map[candidate]*candidateHistory),
		kinds: newGroups(l.names, row), rules: newGroups(l.names, row), actions: newGroups(l.names, row),
		channels: newGroups(l.channels, func() *voteCounter { return newVoteCounter(l, l.halfMinutes*channelFactor) }),
		people:   newGroups(l.names, func() *voteCounter { return newVoteCounter(l, l.halfMinutes) }, query.Person),
	}
}

func (c *Collector) inRange(created int64) bool {
	return created >= c.query.Since.UnixMilli() && created <= c.query.Until.UnixMilli()
}

// AddRequest adds a request, unless it is a question for an end user.
func (c *Collector) AddRequest(r RequestIndex) {
	if r.ForEndUser > 0 || !c.inRange(r.Created) || r.Restricted > 0 && c.query.HideRestricted {
		return
	}
	now := c.now.UnixMilli()
	c.all.add(r, now)
	c.times.add(r)
	c.kinds.add(r.Kind, func(row *rowCounter) { row.add(r, now) })
	for _, rule := range r.Rules {
		c.rules.add(rule, func(row *rowCounter) { row.add(r, now) })
	}
	c.actions.add(r.Action, func(row *rowCounter) { row.add(r, now) })
	c.addEvidence(r)
}

// AddVote adds a vote.
func (c *Collector) AddVote(v VoteIndex) {
	if v.ForEndUser > 0 || !c.inRange(v.Created) {
		return
	}
	c.votes++
	late := isOutOfHours(time.UnixMilli(v.At).In(c.query.Zone))
	c.channels.add(channel(v.Via), func(to *voteCounter) { to.add(v, late) })
	c.people.add(v.Actor, func(to *voteCounter) { to.add(v, late) })
}

// Report returns the report.
func (c *Collector) Report() Report {
	stats := func(name string, v *voteCounter) VoteStats { return v.stats(name, c.votes) }
	report := Report{
		Since: c.query.Since.UTC(), Until: c.query.Until.UTC(), All: c.all.row(""),
		ByKind: rows(c.kinds, newRow), ByRule: rows(c.rules, newRow), ByAction: rows(c.actions, newRow),
		ByDay: slices.Clone(c.times.days), ByHour: slices.Clone(c.times.hours[:]),
		Channels: rows(c.channels, stats), People: rows(c.people, stats),
	}
	if retained := c.now.Add(-c.query.Retention).UTC(); c.query.Retention > 0 && retained.After(c.query.Since) {
		report.RetainedSince = &retained
	}
	report.Proposals = c.proposals()
	if c.query.Person != "" {
		all := len(report.People)
		report.People = slices.DeleteFunc(report.People, func(v VoteStats) bool { return v.Name != c.query.Person })
		report.Hidden = all - len(report.People)
	}
	return report
}
