package analytics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// The memory of a collector does not grow with the number of decisions.
func TestCollector_MemoryDoesNotGrowWithRequests(t *testing.T) {
	story := generator{Rand: rand.New(rand.NewPCG(1, 2)), people: 50, tools: 20, days: 365}
	c := NewCollector(Query{}, start)
	c.query.Until = start.Add(1000 * 24 * time.Hour)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	const decisions = 40_000
	for range decisions {
		r, v := story.next()
		c.AddRequest(r)
		c.AddVote(v)
	}
	if each := (heap() - before) / decisions; each > 64 {
		t.Errorf("%d bytes per decision", each)
	}
	if got := c.Report(); got.All.Requests != decisions || len(got.People) != 50 {
		t.Errorf("%+v", got.All)
	}
}

// Names beyond the limit share one row, which is complete. The person in the query has their own
// row.
func TestCollector_LimitsRows(t *testing.T) {
	c := NewCollector(Query{Person: "me"}, start.Add(time.Hour))
	const names = 3 * 5000
	for n := range names {
		name, at := fmt.Sprint("n", n), start.UnixMilli()
		c.AddRequest(RequestIndex{Kind: name, Rules: []string{name}, Action: name, By: name, Outcome: "approve", Created: at, Decided: at + 1})
		c.AddVote(VoteIndex{Actor: name, Via: name, Created: at, At: at})
	}
	c.AddVote(VoteIndex{Actor: "me", Via: "me", Created: start.UnixMilli(), At: start.UnixMilli()})
	r := c.Report()
	for _, rows := range [][]Row{r.ByKind, r.ByRule, r.ByAction} {
		if len(rows) != 5001 || rows[0].Name != otherRow || rows[0].Requests != names-5000 {
			t.Errorf("%d rows, the first is %+v", len(rows), rows[0])
		}
	}
	if len(r.Channels) != 65 || r.Channels[0].Name != otherRow || r.Channels[0].Votes != names+1-64 {
		t.Errorf("%d channels, the first is %+v", len(r.Channels), r.Channels[0])
	}
	if len(r.People) != 1 || r.People[0].Votes != 1 || r.Hidden != 5001 {
		t.Errorf("%+v, and %d more", r.People, r.Hidden)
	}
	if len(c.candidates) != 5000 || c.deciders != 5000 {
		t.Errorf("%d candidates and %d deciders are kept", len(c.candidates), c.deciders)
	}
}

// approvedBy adds approvals of an action by each of several people, with their votes.
func approvedBy(c *Collector, action string, times int, people ...string) {
	for n := range times {
		for _, name := range people {
			at := start.Add(time.Duration(n) * time.Minute).UnixMilli()
			c.AddRequest(RequestIndex{Action: action, By: name, Outcome: "approve", Created: at, Decided: at + 60_000})
			c.AddVote(VoteIndex{Actor: name, Verb: "approve", Created: at, Viewed: at, At: at + 60_000})
		}
	}
}

// People without their own row cannot be checked for rubber-stamping.
func TestPropose_ApproversWithoutOwnRowDoNotCount(t *testing.T) {
	l := defaultLimits
	l.names = 2
	c := newCollector(Query{}, start.Add(time.Hour), l)
	approvedBy(c, "refund", 30, "ann", "bob", "cid")
	if got := c.Report().Proposals; len(got) != 1 || got[0].Approved != 60 || got[0].Deciders != 2 {
		t.Errorf("%+v", got)
	}
}

// Candidates over the limit count less, and free their place when they are ruled out.
func TestPropose_LimitsDeciders(t *testing.T) {
	l := defaultLimits
	l.deciders = 2
	c := newCollector(Query{}, start.Add(time.Hour), l)
	approvedBy(c, "refund", 30, "ann", "bob", "cid")
	if got := c.Report().Proposals; len(got) != 1 || got[0].Approved != 60 || got[0].Deciders != 2 {
		t.Errorf("%+v", got)
	}
	c.AddRequest(RequestIndex{Action: "refund", Outcome: "reject", Created: start.UnixMilli(), Decided: start.UnixMilli()})
	approvedBy(c, "refund", 30, "ann", "bob")
	approvedBy(c, "email", 30, "ann", "bob")
	if got := c.Report().Proposals; len(got) != 1 || got[0].Action != "email" || got[0].Approved != 60 {
		t.Errorf("%+v", got)
	}
}

func TestQuantiles_BucketsAreOrderedAndNarrow(t *testing.T) {
	var durations []int64
	for n := range int64(300) {
		durations = append(durations, n, -n)
	}
	for d := int64(300); d < 1<<50; d = d*10/9 + 1 {
		durations = append(durations, d, -d)
	}
	slices.Sort(durations)
	last := int32(math.MinInt32)
	for _, d := range durations {
		got := bucketOf(d)
		if got < last || abs(float64(bucketMiddle(got)-d)) > abs(float64(d))/128 || bucketOf(bucketMiddle(got)) != got {
			t.Fatalf("%d is in bucket %d with middle %d; the one before was %d", d, got, bucketMiddle(got), last)
		}
		last = got
	}
}

// With very many votes, the busiest minute is still found after quiet ones were evicted, wherever
// it is.
func TestBurstCounter_EvictsQuietTimes(t *testing.T) {
	for _, busyAt := range []int{0, 500, 999} {
		b := burstCounter{maxTimes: 10, maxHalfMinutes: 100}
		for n := range 1000 {
			b.add(int64(n) * 10 * minute)
			if n == busyAt {
				for range 7 {
					b.add(5 * minute)
				}
			}
			if len(b.halfMinutes) > 100 || len(b.at) > 10 {
				t.Fatalf("%d half minutes and %d times are kept", len(b.halfMinutes), len(b.at))
			}
		}
		if got := b.max(); got != 7 {
			t.Errorf("%d, want 7", got)
		}
	}
}

// The busiest time is found even if its votes come far apart: it is never among the quiet ones.
func TestBurstCounter_KeepsBusyTimes(t *testing.T) {
	b := burstCounter{maxTimes: 10, maxHalfMinutes: 100}
	for n := range 1000 {
		b.add(int64(n) * 10 * minute)
		b.add(5 * minute)
	}
	if got := b.max(); got < 990 || got > 1000 {
		t.Errorf("%d, want about 1000", got)
	}
}

// The maximum is kept when its half minutes are evicted.
func TestBurstCounter_RemembersMaximum(t *testing.T) {
	b := burstCounter{maxTimes: 1, maxHalfMinutes: 100}
	for half := range int64(2) {
		b.add(half * halfMinute)
		b.add(half * halfMinute)
	}
	for n := range int64(1000) {
		for range 3 {
			b.add((n + 1) * 10 * minute)
		}
	}
	if got := b.max(); got != 4 {
		t.Errorf("%d, want 4", got)
	}
}

// A channel is busy at more different times than a person.
func TestBurstCounter_ChannelKeepsMoreTimes(t *testing.T) {
	l := defaultLimits
	l.voteTimes, l.halfMinutes = 1, 2
	c := newCollector(Query{}, start, l)
	for n := range int64(channelFactor) {
		c.AddVote(VoteIndex{Actor: "ann", Via: "slack", Created: start.UnixMilli(), At: start.UnixMilli() + n*minute})
	}
	if of, her := len(c.channels.byName["slack"].bursts.halfMinutes), len(c.people.byName["ann"].bursts.halfMinutes); of != channelFactor || her > 2 {
		t.Errorf("%d times of a channel and %d of a person are kept", of, her)
	}
}

// If all durations are equal, so is the median.
func TestQuantiles_StayWithinObservedRange(t *testing.T) {
	s := quantiles{most: 5}
	for range 100 {
		s.add(100_001)
	}
	if got := s.percentiles(); got != (Percentiles{N: 100, P50: 100.001, P90: 100.001, P99: 100.001}) {
		t.Errorf("%+v", got)
	}
}
