package analytics

import (
	"slices"
	"time"
)

// Report is what came of the requests of an account in a while.
//
// Numbers are exact, but for two where there is much to count, so that a report takes no more memory the longer its history is: see [Percentiles]
// and [VoteStats.MaxPerMinute]. And there are no more than 5000 kinds, rules, actions and people that have a row each (64 channels): what has none
// counts in a row with the name "(all others)". Of people, whoever asks has one.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// KeptSince, if it is given, is later than Since: requests of runs that were over before it may be forgotten, and are not counted.
	RetainedSince *time.Time `json:"keptSince,omitempty"`
	// All is every request that was asked in that time; the rows below are the same by kind, rule and action.
	All      Row   `json:"all"`
	ByKind   []Row `json:"byKind"`
	ByRule   []Row `json:"byRule"`
	ByAction []Row `json:"byAction"`
	// Channels and People are about words and not about requests: several people may have to agree.
	Channels []VoteStats `json:"channels"`
	People   []VoteStats `json:"people"`
	// Proposals are rules that history would bear out.
	Proposals []Proposal `json:"proposals"`
	// Hidden is how many rows of people are not shown, because whoever asks may not see them.
	Hidden int `json:"hidden,omitempty"`
}

// Row is what came of some requests.
type Row struct {
	Name      string `json:"name"`
	Requests  int    `json:"requests"`
	Open      int    `json:"open"`
	Approved  int    `json:"approved"`
	Edited    int    `json:"edited"` // of the approved
	Rejected  int    `json:"rejected"`
	Answered  int    `json:"answered"`
	Expired   int    `json:"expired"`
	Abandoned int    `json:"escaped"`
	Withdrawn int    `json:"withdrawn"`
	// Asked is how many were asked back before they were decided, Paged for how many somebody was paged.
	Clarified int `json:"asked"`
	Paged     int `json:"paged"`
	// ToView and ToDecide count from the asking. Waited is how long runs stood still, all in all, in hours.
	ToView      Percentiles `json:"toView"`
	ToDecide    Percentiles `json:"toDecide"`
	WaitedHours float64     `json:"waitedHours"`
	// OldestOpen is how long the oldest open one has been open, in seconds.
	OldestOpen float64 `json:"oldestOpenSeconds"`
}

// Percentiles are percentiles, in seconds: the smallest that so many are not above. Of more than 512 they may be off by one part in 128.
type Percentiles struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// VoteStats is what some people said, or what was said on a channel.
type VoteStats struct {
	Name      string  `json:"name"`
	Votes     int     `json:"words"`
	Approvals float64 `json:"yesPercent"`   // of those that were a yes or a no; 0 if none was
	Share     float64 `json:"sharePercent"` // of all words
	// ToDecide counts from the asking, Reading from the first look.
	ToDecide Percentiles `json:"toDecide"`
	Reading  Percentiles `json:"reading"`
	// Blind is how many were said without looking, TooFast how many faster than anybody reads, Burst the most within a minute. Together they are what
	// rubber-stamping looks like; none of them alone proves it. Of more than 16384 words, Burst is the most within two half minutes of the clock,
	// which is never more, and half of it at least unless somebody has words in more than 32768 different half minutes (a channel: a million).
	Unviewed     int     `json:"blind"`
	TooFast      float64 `json:"tooFastPercent"`
	MaxPerMinute int     `json:"mostInAMinute"`
	// OutOfHours is the share of words between 20:00 and 7:00 and on weekends, in the zone of the report.
	OutOfHours float64 `json:"outOfHoursPercent"`
	Suspect    bool    `json:"suspect"`
}

// Proposal is a rule that history would bear out: always approved, never edited, by several people who looked.
type Proposal struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"` // that has it asked now
	// Approved is how often, Deciders by how many people, Waited for how many hours all in all.
	Approved    int     `json:"approved"`
	Deciders    int     `json:"deciders"`
	WaitedHours float64 `json:"waitedHours"`
	Text        string  `json:"text"`
}

const (
	readingSpeed     = 600 // words a minute: faster than anybody reads
	minVotes         = 20  // from how many words, yes or no, on somebody can be suspected
	suspectApprovals = 98.0
	suspectFast      = 30.0

	proposeAfter    = 50 // approvals
	proposeDeciders = 2
)

// Query says what a report is about.
type Query struct {
	// Since and Until are about when requests were asked; a zero Until is now.
	Since, Until time.Time
	// Zone is where people work; nil is UTC.
	Zone *time.Location
	// Person, if given, is the only one who is shown by name.
	Person string
	// Retention is how long requests are kept after their runs are over; 0 is for ever.
	Retention time.Duration
}

// Collector takes facts, one after the other and in any order, and makes a report of them. It keeps numbers and no facts: its memory goes by how
// many different names there are, not by how many requests.
type Collector struct {
	query  Query
	now    time.Time
	limits limits

	all                   rowCounter
	kinds, rules, actions groups[rowCounter]
	channels, people      groups[voteCounter]
	candidates            map[candidate]*candidateHistory
	votes, deciders       int
}

// limits are how much a collector keeps.
type limits struct {
	names       int // rows of a kind
	channels    int
	durations   int // durations that are kept one by one
	voteTimes   int // times of words that are kept one by one
	halfMinutes int // half minutes in which somebody said something
	deciders    int // all in all, of what may be proposed
}

// defaultLimits is what a report over years may take. The texts at [Report], [Percentiles] and [VoteStats] say these numbers.
var defaultLimits = limits{names: 5000, channels: 64, durations: 512, voteTimes: 16384, halfMinutes: 32768, deciders: 100_000}

// channelFactor is how many times as many half minutes a channel has as a person: a year has a million.
const channelFactor = 32

// NewCollector makes a collector for what is asked for; now is when open requests are looked at.
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
		query: query, now: now, limits: l, all: *row(), candidates: make(map[candidate]*candidateHistory),
		kinds: newGroups(l.names, row), rules: newGroups(l.names, row), actions: newGroups(l.names, row),
		channels: newGroups(l.channels, func() *voteCounter { return newVoteCounter(l, l.halfMinutes*channelFactor) }),
		people:   newGroups(l.names, func() *voteCounter { return newVoteCounter(l, l.halfMinutes) }, query.Person),
	}
}

func (c *Collector) inRange(created int64) bool {
	return created >= c.query.Since.UnixMilli() && created <= c.query.Until.UnixMilli()
}

// Request takes a request.
func (c *Collector) AddRequest(r RequestIndex) {
	if !c.inRange(r.Created) {
		return
	}
	now := c.now.UnixMilli()
	c.all.add(r, now)
	c.kinds.add(r.Kind, func(row *rowCounter) { row.add(r, now) })
	c.rules.add(r.Rule, func(row *rowCounter) { row.add(r, now) })
	c.actions.add(r.Action, func(row *rowCounter) { row.add(r, now) })
	c.addEvidence(r)
}

// Vote takes somebody's word.
func (c *Collector) AddVote(v VoteIndex) {
	if !c.inRange(v.Created) {
		return
	}
	c.votes++
	late := isOutOfHours(time.UnixMilli(v.At).In(c.query.Zone))
	c.channels.add(channel(v.Via), func(to *voteCounter) { to.add(v, late) })
	c.people.add(v.Actor, func(to *voteCounter) { to.add(v, late) })
}

// Report is what has been collected.
func (c *Collector) Report() Report {
	voice := func(name string, v *voteCounter) VoteStats { return v.stats(name, c.votes) }
	report := Report{
		Since: c.query.Since.UTC(), Until: c.query.Until.UTC(), All: c.all.row(""),
		ByKind: rows(c.kinds, newRow), ByRule: rows(c.rules, newRow), ByAction: rows(c.actions, newRow),
		Channels: rows(c.channels, voice), People: rows(c.people, voice),
	}
	if kept := c.now.Add(-c.query.Retention).UTC(); c.query.Retention > 0 && kept.After(c.query.Since) {
		report.RetainedSince = &kept
	}
	report.Proposals = c.proposals()
	if c.query.Person != "" {
		all := len(report.People)
		report.People = slices.DeleteFunc(report.People, func(v VoteStats) bool { return v.Name != c.query.Person })
		report.Hidden = all - len(report.People)
	}
	return report
}
