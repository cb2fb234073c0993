package analytics

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// smallLimits are so small that the limits are soon exceeded.
var smallLimits = limits{names: 3, channels: 2, durations: 40, voteTimes: 30, halfMinutes: 1 << 20, deciders: 1 << 20, days: 4}

// A collector gives the same report as the reference, which keeps all data: exactly below the
// limits, and within the documented error above them.
func TestProperty_CollectorMatchesReference(t *testing.T) {
	proposed, folded, crowded := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom([]limits{defaultLimits, smallLimits}).Draw(t, "limits")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		story := generator{
			Rand: random, people: rapid.IntRange(1, 5).Draw(t, "people"), tools: rapid.IntRange(1, 5).Draw(t, "tools"), hasty: rapid.IntRange(0, 100).Draw(t, "hasty percent"),
			spoiled: rapid.IntRange(0, 3).Draw(t, "spoiled percent"), days: rapid.SampledFrom([]int{1, 30}).Draw(t, "days"),
		}
		query := Query{Since: start, Until: start.Add(240 * time.Hour), Zone: time.FixedZone("there", -5*3600), Person: rapid.SampledFrom([]string{"", "p1"}).Draw(t, "who asks")}
		now := start.Add(250 * time.Hour)
		c, w := newCollector(query, now, l), referenceReport{query: query, now: now, limits: l}
		for range rapid.IntRange(0, 700).Draw(t, "facts") {
			r, v := story.next()
			c.AddRequest(r)
			w.requests = append(w.requests, r)
			if random.IntN(10) > 0 {
				c.AddVote(v)
				w.votes = append(w.votes, v)
			}
		}
		got, want := c.Report(), w.report()
		if again := c.Report(); !reflect.DeepEqual(got, again) {
			t.Fatalf("two reports differ:\n%+v\n%+v", got, again)
		}
		proposed += len(want.Proposals)
		if l == smallLimits && got.All.ToDecide.N > l.durations {
			folded++
		}
		if slices.ContainsFunc(got.ByAction, func(r Row) bool { return r.Name == otherRow }) {
			crowded++
		}
		compareReports(t, l, &got, &want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
	if proposed == 0 || folded == 0 || crowded == 0 {
		t.Errorf("the generated data is not varied enough: %d proposals, %d quantiles, %d full groups", proposed, folded, crowded)
	}
}

var start = time.Date(2026, 11, 9, 10, 0, 0, 0, time.UTC)

// generator generates decisions.
type generator struct {
	*rand.Rand
	people, tools, hasty, spoiled, days int
}

func (s generator) often(percent int) bool { return s.IntN(100) < percent }

func (s generator) next() (RequestIndex, VoteIndex) {
	at := start.Add(time.Duration(s.Int64N(int64(s.days) * int64(24*time.Hour)))).UnixMilli()
	tool := s.IntN(s.tools)
	r := RequestIndex{
		Kind: fmt.Sprint("k", s.IntN(2)), Action: fmt.Sprint("t", tool), Rules: []string{fmt.Sprint("r", tool/2)}, By: fmt.Sprint("p", s.IntN(s.people)), WordCount: 50,
		Created: at, Outcome: "approve", Decided: at + s.about(1000) - 50, // clocks may be adjusted
	}
	if s.often(90) {
		r.Viewed = at + s.about(500)
	}
	if s.often(s.spoiled) {
		switch s.IntN(9) {
		case 0:
			r.Outcome, r.Decided, r.By = "", 0, ""
		case 1:
			r.Edited = 1
		case 2:
			r.Clarifications = 2
		case 3:
			r.Paged = 3
		case 4:
			r.Action, r.Rules = "", nil
		case 5:
			r.Rules = append(r.Rules, "another")
		default:
			r.Outcome = []string{"reject", "answer", "expire", "abandon", "withdraw"}[s.IntN(5)]
		}
	}
	v := VoteIndex{Actor: r.By, Verb: "approve", Via: []string{"", "slack", "http/oidc amr=otp", "mcp"}[s.IntN(4)], WordCount: r.WordCount, Created: at, Viewed: r.Viewed, At: at + s.about(60)}
	switch r.Outcome {
	case "reject":
		v.Verb = r.Outcome
	case "answer":
		v.Verb = "respond"
	}
	if s.often(s.hasty) && r.By == "p0" {
		v.At = max(at, v.Viewed+1)
	}
	if s.often(30) { // many at the same time
		v.At = start.UnixMilli() + s.Int64N(100_000)
		v.Created = v.At - 5
	}
	return r, v
}

// about returns a duration of about the given seconds, sometimes much longer.
func (s generator) about(seconds float64) int64 { return int64(s.ExpFloat64() * seconds * 1000) }

// compareReports makes two reports equal where they may differ, if the difference is within the
// allowed error.
func compareReports(t *rapid.T, l limits, got, want *Report) {
	nearTimes := func(name string, got *Percentiles, want Percentiles) {
		if got.N != want.N {
			t.Fatalf("%s: %+v, want %+v", name, *got, want)
		}
		for _, p := range []struct {
			got  *float64
			want float64
		}{{&got.P50, want.P50}, {&got.P90, want.P90}, {&got.P99, want.P99}} {
			if got.N > l.durations && abs(*p.got-p.want) <= abs(p.want)/128+0.0005 {
				*p.got = p.want
			}
		}
	}
	nearRow := func(got *Row, want Row) {
		nearTimes(got.Name, &got.ToView, want.ToView)
		nearTimes(got.Name, &got.ToDecide, want.ToDecide)
	}
	nearRow(&got.All, want.All)
	for _, rows := range [][2][]Row{{got.ByKind, want.ByKind}, {got.ByRule, want.ByRule}, {got.ByAction, want.ByAction}} {
		for i := range min(len(rows[0]), len(rows[1])) {
			nearRow(&rows[0][i], rows[1][i])
		}
	}
	for _, rows := range [][2][]VoteStats{{got.Channels, want.Channels}, {got.People, want.People}} {
		for i := range min(len(rows[0]), len(rows[1])) {
			got, want := &rows[0][i], rows[1][i]
			nearTimes(got.Name, &got.ToDecide, want.ToDecide)
			nearTimes(got.Name, &got.Reading, want.Reading)
			if got.Votes > l.voteTimes && got.MaxPerMinute <= want.MaxPerMinute && 2*got.MaxPerMinute >= want.MaxPerMinute {
				got.MaxPerMinute = want.MaxPerMinute
			}
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
