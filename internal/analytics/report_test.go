package analytics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
)

var monday = time.Date(2026, 11, 9, 10, 0, 0, 0, time.UTC)

func ms(t time.Time) int64 { return t.UnixMilli() }

// decided returns a request that was created at a time and decided after a duration.
func decided(at time.Time, after time.Duration, outcome, by string) analytics.RequestIndex {
	return analytics.RequestIndex{Kind: "approval", Action: "refund", Rules: []string{"refunds"}, Outcome: outcome, By: by, Created: ms(at), Viewed: ms(at.Add(after / 2)), Decided: ms(at.Add(after)), WordCount: 100}
}

func TestReport_CountsOutcomes(t *testing.T) {
	c := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(24*time.Hour))
	for n, outcome := range []string{"approve", "approve", "reject", "expire", "abandon", "withdraw"} {
		r := decided(monday.Add(time.Duration(n)*time.Minute), time.Duration(n+1)*time.Minute, outcome, "ann")
		if n == 1 {
			r.Edited, r.Clarifications, r.Paged = 1, 2, 1
		}
		c.AddRequest(r)
	}
	c.AddRequest(analytics.RequestIndex{Kind: "review", Created: ms(monday.Add(23 * time.Hour))})
	c.AddRequest(decided(monday.Add(-time.Hour), time.Minute, "approve", "ann")) // before
	r := c.Report()
	a := r.All
	if a.Requests != 7 || a.Open != 1 || a.Approved != 2 || a.Edited != 1 || a.Rejected != 1 || a.Expired != 1 || a.Abandoned != 1 || a.Withdrawn != 1 || a.Clarified != 1 || a.Paged != 1 {
		t.Errorf("%+v", a)
	}
	if a.OldestOpen != 3600 || a.ToDecide != (analytics.Percentiles{N: 3, P50: 120, P90: 180, P99: 180}) || a.ToView.N != 6 {
		t.Errorf("%+v", a)
	}
	if len(r.ByKind) != 2 || r.ByKind[0].Name != "approval" || len(r.ByRule) != 1 || r.ByAction[0].Requests != 6 {
		t.Errorf("%+v", r)
	}
}

// A person who always approves, faster than reading speed, is flagged and does not count for
// proposals.
func TestReport_FlagsRubberStamping(t *testing.T) {
	c := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(240*time.Hour))
	for n := range 60 {
		at := monday.Add(time.Duration(n) * time.Hour)
		careful, hasty := at.Add(30*time.Second), at.Add(time.Second)
		verb := "approve"
		if n%10 == 0 {
			verb = "reject"
		}
		c.AddVote(analytics.VoteIndex{Actor: "ann", Verb: verb, WordCount: 100, Created: ms(at), Viewed: ms(at), At: ms(careful), Via: "http/oidc amr=otp"})
		c.AddVote(analytics.VoteIndex{Actor: "dan", Verb: "approve", WordCount: 100, Created: ms(at), Viewed: ms(at), At: ms(hasty), Via: "slack"})
		c.AddRequest(decided(at, time.Minute, "approve", "dan"))
	}
	r := c.Report()
	if len(r.People) != 2 || r.People[0].Suspect || !r.People[1].Suspect || r.People[1].TooFast != 100 || r.People[0].Approvals != 90 || r.People[0].Reading.P50 != 30 {
		t.Errorf("%+v", r.People)
	}
	if r.People[0].OutOfHours == 0 || r.People[0].MaxPerMinute != 1 || r.People[0].Share != 50 {
		t.Errorf("%+v", r.People[0])
	}
	if len(r.Channels) != 2 || r.Channels[0].Name != "http/oidc" || r.Channels[1].Name != "slack" {
		t.Errorf("%+v", r.Channels)
	}
	if len(r.Proposals) != 0 {
		t.Errorf("proposed on the basis of rubber-stamping: %+v", r.Proposals)
	}
}

// An answer is neither an approval nor a rejection. It must not count as an approval, and a fast
// answer is not rubber-stamping.
func TestReport_AnswerIsNotApproval(t *testing.T) {
	c := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(240*time.Hour))
	for n := range 60 {
		at := ms(monday.Add(time.Duration(n) * time.Hour))
		c.AddVote(analytics.VoteIndex{Actor: "ann", Verb: "respond", WordCount: 100, Created: at, Viewed: at, At: at + 1000})
		c.AddVote(analytics.VoteIndex{Actor: "bob", Verb: "respond", WordCount: 100, Created: at, Viewed: at, At: at + 1000})
		c.AddVote(analytics.VoteIndex{Actor: "bob", Verb: pick(n%4 == 0, "approve", "reject"), WordCount: 100, Created: at, Viewed: at, At: at + 30_000})
		c.AddVote(analytics.VoteIndex{Actor: "eve", Verb: "respond", WordCount: 100, Created: at, Viewed: at, At: at + 1000})
		// reads what they approve
		c.AddVote(analytics.VoteIndex{Actor: "eve", Verb: "approve", WordCount: 100, Created: at, Viewed: at, At: at + 30_000})
	}
	people := c.Report().People
	if len(people) != 3 || people[0].Votes != 60 || people[0].Approvals != 0 || people[1].Approvals != 25 || people[2].Approvals != 100 {
		t.Errorf("%+v", people)
	}
	for _, who := range people {
		if who.Suspect {
			t.Errorf("%s is suspect: %+v", who.Name, who)
		}
	}
}

func TestReport_ProposesAlwaysApprovedActions(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(n int, r *analytics.RequestIndex)
		want  int
	}{
		"always":            {func(int, *analytics.RequestIndex) {}, 1},
		"once refused":      {func(n int, r *analytics.RequestIndex) { r.Outcome = pick(n == 7, "reject", "approve") }, 0},
		"once edited":       {func(n int, r *analytics.RequestIndex) { r.Edited = pick(n == 7, 1, 0) }, 0},
		"once expired":      {func(n int, r *analytics.RequestIndex) { r.Outcome = pick(n == 7, "expire", "approve") }, 0},
		"once asked about":  {func(n int, r *analytics.RequestIndex) { r.Clarifications = pick(n == 7, 1, 0) }, 0},
		"once withdrawn":    {func(n int, r *analytics.RequestIndex) { r.Outcome = pick(n == 7, "withdraw", "approve") }, 1},
		"by one person":     {func(_ int, r *analytics.RequestIndex) { r.By = "ann" }, 0},
		"two rules":         {func(n int, r *analytics.RequestIndex) { r.Rules = []string{fmt.Sprint("rule ", n%2)} }, 0},
		"is about a choice": {func(_ int, r *analytics.RequestIndex) { r.Action = "" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			collector := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(240*time.Hour))
			for n := range 55 {
				r := decided(monday.Add(time.Duration(n)*time.Hour), time.Hour, "approve", pick(n%2 == 0, "ann", "bob"))
				c.spoil(n, &r)
				collector.AddRequest(r)
			}
			if got := collector.Report().Proposals; len(got) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Regression: only the first rule of a request was counted.
func TestReport_CountsARequestForEachOfItsRules(t *testing.T) {
	c := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(240*time.Hour))
	small, large := decided(monday, time.Hour, "approve", "ann"), decided(monday, time.Hour, "reject", "ann")
	large.Rules = append(large.Rules, "large-refunds")
	c.AddRequest(small)
	c.AddRequest(large)
	rows := c.Report().ByRule
	if len(rows) != 2 || rows[0].Name != "large-refunds" || rows[0].Requests != 1 || rows[0].Rejected != 1 || rows[1].Requests != 2 || c.Report().All.Requests != 2 {
		t.Errorf("%+v", rows)
	}
}

func pick[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

func BenchmarkReport_AMillionDecisions(b *testing.B) {
	for b.Loop() {
		c := analytics.NewCollector(analytics.Query{Since: monday}, monday.Add(24*365*time.Hour))
		for n := range 1_000_000 {
			at := monday.Add(time.Duration(n) * time.Second)
			c.AddRequest(decided(at, time.Minute, "approve", "ann"))
			c.AddVote(analytics.VoteIndex{Actor: fmt.Sprint("p", n%50), Verb: "approve", WordCount: 100, Created: ms(at), Viewed: ms(at), At: ms(at.Add(time.Minute)), Via: "http/oidc"})
		}
		c.Report()
	}
}
