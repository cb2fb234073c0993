package analytics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what came of the requests of an account in a while.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// All is every request that was asked in that time; the rows below are the same by kind, rule and action.
	All      Row   `json:"all"`
	ByKind   []Row `json:"byKind"`
	ByRule   []Row `json:"byRule"`
	ByAction []Row `json:"byAction"`
	// Channels and People are about words and not about requests: several people may have to agree.
	Channels []Voices `json:"channels"`
	People   []Voices `json:"people"`
	// Proposals are rules that history would bear out.
	Proposals []Proposal `json:"proposals"`
	// Hidden is how many people are not shown, because whoever asks may not see them.
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
	Escaped   int    `json:"escaped"`
	Withdrawn int    `json:"withdrawn"`
	// Asked is how many were asked back before they were decided, Paged for how many somebody was paged.
	Asked int `json:"asked"`
	Paged int `json:"paged"`
	// ToView and ToDecide count from the asking. Waited is how long runs stood still, all in all, in hours.
	ToView   Times   `json:"toView"`
	ToDecide Times   `json:"toDecide"`
	Waited   float64 `json:"waitedHours"`
	// OldestOpen is how long the oldest open one has been open, in seconds.
	OldestOpen float64 `json:"oldestOpenSeconds"`
}

// Times are percentiles, in seconds.
type Times struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Voices is what some people said, or what was said on a channel.
type Voices struct {
	Name  string  `json:"name"`
	Words int     `json:"words"`
	Yes   float64 `json:"yesPercent"`
	Share float64 `json:"sharePercent"` // of all words
	// ToDecide counts from the asking, Reading from the first look.
	ToDecide Times `json:"toDecide"`
	Reading  Times `json:"reading"`
	// Blind is how many were said without looking, TooFast how many faster than anybody reads, Burst the most within a minute. Together they are what
	// rubber-stamping looks like; none of them alone proves it.
	Blind   int     `json:"blind"`
	TooFast float64 `json:"tooFastPercent"`
	Burst   int     `json:"mostInAMinute"`
	// OutOfHours is the share of words between 20:00 and 7:00 and on weekends, in the zone of the report.
	OutOfHours float64 `json:"outOfHoursPercent"`
	Suspect    bool    `json:"suspect"`
}

// Proposal is a rule that history would bear out: always approved, never edited, by several people who looked.
type Proposal struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"` // that has it asked now
	// Approved is how often, Deciders by how many people, Waited for how many hours all in all.
	Approved int     `json:"approved"`
	Deciders int     `json:"deciders"`
	Waited   float64 `json:"waitedHours"`
	Text     string  `json:"text"`
}

const (
	readingSpeed = 600 // words a minute: faster than anybody reads
	manyWords    = 20  // from how many words on somebody can be suspected
	suspectYes   = 98.0
	suspectFast  = 30.0

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
}

// Collector takes facts, one after the other, and makes a report of them.
type Collector struct {
	query    Query
	now      time.Time
	requests []RequestFacts
	votes    []VoteFacts
}

// NewCollector makes a collector for what is asked for; now is when open requests are looked at.
func NewCollector(query Query, now time.Time) *Collector {
	if query.Until.IsZero() {
		query.Until = now
	}
	if query.Zone == nil {
		query.Zone = time.UTC
	}
	return &Collector{query: query, now: now}
}

func (c *Collector) within(created int64) bool {
	return created >= c.query.Since.UnixMilli() && created <= c.query.Until.UnixMilli()
}

// Request takes a request.
func (c *Collector) Request(r RequestFacts) {
	if c.within(r.Created) {
		c.requests = append(c.requests, r)
	}
}

// Vote takes somebody's word.
func (c *Collector) Vote(v VoteFacts) {
	if c.within(v.Created) {
		c.votes = append(c.votes, v)
	}
}

// Report is what has been collected.
func (c *Collector) Report() Report {
	report := Report{Since: c.query.Since.UTC(), Until: c.query.Until.UTC()}
	report.All = c.row("", c.requests)
	report.ByKind = c.rows(func(r RequestFacts) string { return r.Kind })
	report.ByRule = c.rows(func(r RequestFacts) string { return r.Rule })
	report.ByAction = c.rows(func(r RequestFacts) string { return r.Action })
	report.Channels = c.voices(func(v VoteFacts) string { return channel(v.Via) })
	report.People = c.voices(func(v VoteFacts) string { return v.Actor })
	report.Proposals = c.proposals(report.People)
	if c.query.Person != "" {
		all := len(report.People)
		report.People = slices.DeleteFunc(report.People, func(v Voices) bool { return v.Name != c.query.Person })
		report.Hidden = all - len(report.People)
	}
	return report
}

// channel is how a word came, without how its giver signed in.
func channel(via string) string {
	name, _, _ := strings.Cut(via, " ")
	return cmp.Or(name, "direct")
}

// grouped puts things with the same name together, in the order of the names. What has no name is left out.
func grouped[T any](all []T, name func(T) string) (names []string, groups map[string][]T) {
	groups = make(map[string][]T)
	for _, one := range all {
		if n := name(one); n != "" {
			groups[n] = append(groups[n], one)
		}
	}
	return slices.Sorted(maps.Keys(groups)), groups
}

func (c *Collector) rows(name func(RequestFacts) string) []Row {
	names, groups := grouped(c.requests, name)
	rows := make([]Row, 0, len(names))
	for _, n := range names {
		rows = append(rows, c.row(n, groups[n]))
	}
	return rows
}

func (c *Collector) row(name string, requests []RequestFacts) Row {
	row := Row{Name: name, Requests: len(requests)}
	var toView, toDecide []int64
	for _, r := range requests {
		row.count(r)
		if r.Viewed > 0 {
			toView = append(toView, r.Viewed-r.Created)
		}
		end := r.Decided
		if end == 0 {
			end = c.now.UnixMilli()
			row.OldestOpen = max(row.OldestOpen, seconds(end-r.Created))
		} else if r.Outcome == "approve" || r.Outcome == "reject" || r.Outcome == "answer" {
			toDecide = append(toDecide, end-r.Created)
		}
		row.Waited += seconds(end-r.Created) / 3600
	}
	row.ToView, row.ToDecide = times(toView), times(toDecide)
	return row
}

func (row *Row) count(r RequestFacts) {
	switch r.Outcome {
	case "":
		row.Open++
	case "approve":
		row.Approved++
		row.Edited += r.Edited
	case "reject":
		row.Rejected++
	case "answer":
		row.Answered++
	case "expire":
		row.Expired++
	case "escape":
		row.Escaped++
	case "withdraw":
		row.Withdrawn++
	}
	row.Asked += min(r.Asked, 1)
	row.Paged += min(r.Paged, 1)
}

func seconds(millis int64) float64 { return float64(millis) / 1000 }

// times are the percentiles of durations in milliseconds: the smallest that so many are not above.
func times(millis []int64) Times {
	slices.Sort(millis)
	at := func(percent int) float64 {
		if len(millis) == 0 {
			return 0
		}
		return seconds(millis[max(0, (len(millis)*percent+99)/100-1)])
	}
	return Times{N: len(millis), P50: at(50), P90: at(90), P99: at(99)}
}

func (c *Collector) voices(name func(VoteFacts) string) []Voices {
	names, groups := grouped(c.votes, name)
	all := make([]Voices, 0, len(names))
	for _, n := range names {
		all = append(all, c.voice(n, groups[n]))
	}
	return all
}

func (c *Collector) voice(name string, votes []VoteFacts) Voices {
	v := Voices{Name: name, Words: len(votes), Share: percent(len(votes), len(c.votes))}
	var toDecide, reading []int64
	yes, fast, late := 0, 0, 0
	for _, vote := range votes {
		toDecide = append(toDecide, vote.At-vote.Created)
		if vote.Verb != "reject" {
			yes++
		}
		if vote.Viewed == 0 {
			v.Blind++
		} else if read := vote.At - vote.Viewed; read >= 0 {
			reading = append(reading, read)
			if read < int64(vote.Words)*60_000/readingSpeed {
				fast++
			}
		}
		if outOfHours(time.UnixMilli(vote.At).In(c.query.Zone)) {
			late++
		}
	}
	v.Yes, v.TooFast, v.OutOfHours = percent(yes, len(votes)), percent(fast, len(votes)), percent(late, len(votes))
	v.ToDecide, v.Reading, v.Burst = times(toDecide), times(reading), burst(votes)
	v.Suspect = v.Words >= manyWords && v.Yes >= suspectYes && v.TooFast >= suspectFast
	return v
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

func outOfHours(at time.Time) bool {
	return at.Hour() < 7 || at.Hour() >= 20 || at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
}

// burst is how many words there were within a minute at most.
func burst(votes []VoteFacts) (most int) {
	at := make([]int64, 0, len(votes))
	for _, v := range votes {
		at = append(at, v.At)
	}
	slices.Sort(at)
	first := 0
	for i := range at {
		for at[i]-at[first] > 60_000 {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
