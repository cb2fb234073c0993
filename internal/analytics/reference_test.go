package analytics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// referenceReport computes a report in the simple way: it keeps all data and scans it for each
// number.
type referenceReport struct {
	query    Query
	now      time.Time
	limits   limits
	requests []RequestIndex
	votes    []VoteIndex
}

func (w *referenceReport) report() Report {
	w.requests = slices.DeleteFunc(slices.Clone(w.requests), func(r RequestIndex) bool { return w.outside(r.Created) })
	w.votes = slices.DeleteFunc(slices.Clone(w.votes), func(v VoteIndex) bool { return w.outside(v.Created) })
	r := Report{
		Since: w.query.Since.UTC(), Until: w.query.Until.UTC(), All: w.row("", w.requests),
		ByKind:   groupRows(w.requests, func(r RequestIndex) string { return r.Kind }, w.limits.names, "", w.row),
		ByRule:   groupRows(ruleHits(w.requests), func(h ruleHit) string { return h.rule }, w.limits.names, "", w.ruleRow),
		ByAction: groupRows(w.requests, func(r RequestIndex) string { return r.Action }, w.limits.names, "", w.row),
		Channels: groupRows(w.votes, func(v VoteIndex) string { return cmp.Or(strings.Split(v.Via, " ")[0], "direct") }, w.limits.channels, "", w.voteStats),
		People:   groupRows(w.votes, func(v VoteIndex) string { return v.Actor }, w.limits.names, w.query.Person, w.voteStats),
	}
	r.ByDay, r.ByHour = w.byDay(), w.byHour()
	r.Proposals = w.proposals(r.People)
	if w.query.Person != "" {
		all := len(r.People)
		r.People = slices.DeleteFunc(r.People, func(v VoteStats) bool { return v.Name != w.query.Person })
		r.Hidden = all - len(r.People)
	}
	return r
}

// ruleHit is a request that a rule required.
type ruleHit struct {
	rule    string
	request RequestIndex
}

func ruleHits(requests []RequestIndex) (hits []ruleHit) {
	for _, r := range requests {
		for _, rule := range r.Rules {
			hits = append(hits, ruleHit{rule, r})
		}
	}
	return hits
}

func (w *referenceReport) ruleRow(name string, hits []ruleHit) Row {
	requests := make([]RequestIndex, len(hits))
	for i, h := range hits {
		requests[i] = h.request
	}
	return w.row(name, requests)
}

func (w *referenceReport) outside(created int64) bool {
	at := time.UnixMilli(created)
	return at.Before(w.query.Since) || at.After(w.query.Until)
}

// groupRows returns a row for each name. The first names have rows of their own.
func groupRows[T, R any](all []T, name func(T) string, most int, sure string, row func(string, []T) R) []R {
	groups := make(map[string][]T)
	for _, one := range all {
		n := name(one)
		if n == "" {
			continue
		}
		if _, known := groups[n]; !known && len(groups) >= most && n != sure {
			n = otherRow
		}
		groups[n] = append(groups[n], one)
	}
	rows := []R{}
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		rows = append(rows, row(n, groups[n]))
	}
	return rows
}

// byDay walks back from the end of the period, one midnight at a time.
func (w *referenceReport) byDay() []DecisionCounts {
	days := []DecisionCounts{}
	end := w.query.Until.In(w.query.Zone)
	midnight := time.Date(end.Year(), end.Month(), end.Day(), 0, 0, 0, 0, w.query.Zone)
	for ; !midnight.Before(w.query.Since) && len(days) < w.limits.days; midnight = midnight.AddDate(0, 0, -1) {
		days = append(days, w.decisions(midnight.Format("2006-01-02"), "2006-01-02"))
	}
	slices.Reverse(days)
	return days
}

func (w *referenceReport) byHour() (hours []DecisionCounts) {
	for h := range 24 {
		hours = append(hours, w.decisions(fmt.Sprintf("%02d:00", h), "15:00"))
	}
	return hours
}

// decisions counts the decisions whose time has a name in a layout.
func (w *referenceReport) decisions(name, layout string) DecisionCounts {
	c := DecisionCounts{Name: name}
	for _, r := range w.requests {
		if r.Decided == 0 || time.UnixMilli(r.Decided).In(w.query.Zone).Format(layout) != name {
			continue
		}
		switch r.Outcome {
		case "approve":
			c.Approved++
		case "reject":
			c.Rejected++
		case "answer":
			c.Answered++
		case "expire":
			c.Expired++
		}
	}
	return c
}

func (w *referenceReport) row(name string, requests []RequestIndex) Row {
	how := func(is func(RequestIndex) bool) (n int) {
		for _, r := range requests {
			if is(r) {
				n++
			}
		}
		return n
	}
	ended := func(as string) int { return how(func(r RequestIndex) bool { return r.Outcome == as }) }
	row := Row{
		Name: name, Requests: len(requests), Open: ended(""), Approved: ended("approve"), Rejected: ended("reject"), Answered: ended("answer"), Expired: ended("expire"),
		Abandoned: ended("abandon"), Withdrawn: ended("withdraw"), Edited: how(func(r RequestIndex) bool { return r.Outcome == "approve" && r.Edited > 0 }),
		Clarified: how(func(r RequestIndex) bool { return r.Clarifications > 0 }), Paged: how(func(r RequestIndex) bool { return r.Paged > 0 }),
	}
	var views, decisions []int64
	var waited int64
	for _, r := range requests {
		if r.Viewed != 0 {
			views = append(views, r.Viewed-r.Created)
		}
		if r.Decided == 0 {
			waited += w.now.UnixMilli() - r.Created
			row.OldestOpen = max(row.OldestOpen, float64(w.now.UnixMilli()-r.Created)/1000)
			continue
		}
		waited += r.Decided - r.Created
		if slices.Contains([]string{"approve", "reject", "answer"}, r.Outcome) {
			decisions = append(decisions, r.Decided-r.Created)
		}
	}
	row.WaitedHours, row.ToView, row.ToDecide = float64(waited)/1000/3600, percentiles(views), percentiles(decisions)
	return row
}

func (w *referenceReport) voteStats(name string, votes []VoteIndex) VoteStats {
	v := VoteStats{Name: name, Votes: len(votes), Share: 100 * float64(len(votes)) / float64(len(w.votes))}
	var decisions, readings []int64
	yes, no, fast, hasty, late := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, vote := range votes {
		decisions = append(decisions, vote.At-vote.Created)
		judges := vote.Verb == "approve" || vote.Verb == "reject"
		if vote.Verb == "approve" {
			yes++
		} else if judges {
			no++
		}
		read := vote.At - vote.Viewed
		switch {
		case vote.Viewed == 0:
			v.Unviewed++
		case read >= 0:
			readings = append(readings, read)
			if read < int64(vote.WordCount)*100 {
				fast++
				if judges {
					hasty++
				}
			}
		}
		at := time.UnixMilli(vote.At).In(w.query.Zone)
		if day := at.Weekday(); at.Hour() < 7 || at.Hour() > 19 || day == time.Saturday || day == time.Sunday {
			late++
		}
		within := 0
		for _, other := range votes {
			if other.At >= vote.At && other.At-vote.At <= 60_000 {
				within++
			}
		}
		v.MaxPerMinute = max(v.MaxPerMinute, within)
	}
	n := float64(len(votes))
	if yes+no > 0 {
		v.Approvals = 100 * yes / (yes + no)
	}
	v.TooFast, v.OutOfHours, v.ToDecide, v.Reading = 100*fast/n, 100*late/n, percentiles(decisions), percentiles(readings)
	v.Suspect = yes+no >= 20 && v.Approvals >= 98 && 100*hasty/(yes+no) >= 30
	return v
}

// percentiles computes exact percentiles.
func percentiles(millis []int64) Percentiles {
	slices.Sort(millis)
	at := func(percent int) float64 {
		for n, one := range millis {
			if (n+1)*100 >= len(millis)*percent {
				return float64(one) / 1000
			}
		}
		return 0
	}
	return Percentiles{N: len(millis), P50: at(50), P90: at(90), P99: at(99)}
}

func (w *referenceReport) proposals(people []VoteStats) (all []Proposal) {
	named := make(map[string]bool)
	no := make(map[string]bool) // do not count
	for _, p := range people {
		named[p.Name] = true
		no[p.Name] = p.Suspect
	}
	settled := slices.DeleteFunc(slices.Clone(w.requests), func(r RequestIndex) bool { return r.Action == "" || r.Outcome == "" || r.Outcome == "withdraw" })
	var subjects []candidate // the first ones
	for _, r := range settled {
		if s := (candidate{r.Action, strings.Join(r.Rules, ", ")}); !slices.Contains(subjects, s) && len(subjects) < w.limits.names {
			subjects = append(subjects, s)
		}
	}
	for _, s := range subjects {
		p, deciders, waited, spoiled := Proposal{Action: s.action, Rule: s.rules}, make(map[string]bool), int64(0), false
		for _, r := range settled {
			if r.Action != s.action || strings.Join(r.Rules, ", ") != s.rules {
				continue
			}
			spoiled = spoiled || r.Outcome != "approve" || r.Edited > 0 || r.Clarifications > 0
			if no[r.By] || named[otherRow] && !named[r.By] {
				continue
			}
			p.Approved++
			deciders[r.By] = true
			waited += r.Decided - r.Created
		}
		p.Deciders, p.WaitedHours = len(deciders), float64(waited)/1000/3600
		p.Text = fmt.Sprintf("%s was approved %d times by %d people, and never edited, rejected or clarified; runs waited %.1f hours for it. A rule could allow it; test it on history first (fermata policy simulate).",
			p.Action, p.Approved, p.Deciders, p.WaitedHours)
		if !spoiled && p.Approved >= 50 && p.Deciders >= 2 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.WaitedHours, a.WaitedHours), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}
