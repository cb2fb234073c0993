package analytics

import (
	"fmt"
	"time"
)

// DecisionCounts has the numbers of the decisions of a day or of an hour of the day.
type DecisionCounts struct {
	// Name is a date such as 2026-11-18, or an hour such as 09:00.
	Name     string `json:"name"`
	Approved int    `json:"approved"`
	Rejected int    `json:"rejected"`
	Answered int    `json:"answered"`
	Expired  int    `json:"expired"`
}

// Total returns the number of decisions.
func (c DecisionCounts) Total() int { return c.Approved + c.Rejected + c.Answered + c.Expired }

func (c *DecisionCounts) add(outcome string) {
	switch outcome {
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

// timeCounter counts decisions by day and by hour of the day.
type timeCounter struct {
	zone     *time.Location
	firstDay int // see dayNumber
	days     []DecisionCounts
	hours    [24]DecisionCounts
}

const day = 24 * time.Hour

// newTimeCounter returns a counter for the days that begin in the period. If there are more than
// maxDays, it counts the last ones.
func newTimeCounter(q Query, maxDays int) *timeCounter {
	since, until := q.Since.In(q.Zone), q.Until.In(q.Zone)
	first, last := dayNumber(since), dayNumber(until)
	if h, m, s := since.Clock(); h+m+s+since.Nanosecond() > 0 {
		first++
	}
	// A period that contains a change to summer time may contain one midnight more.
	maxDays = min(maxDays, int((q.Until.Sub(q.Since)-1)/day)+1)
	first = max(first, last-maxDays+1)
	c := &timeCounter{zone: q.Zone, firstDay: first, days: make([]DecisionCounts, max(last-first+1, 0))}
	for i := range c.days {
		c.days[i].Name = time.Unix(0, 0).UTC().AddDate(0, 0, first+i).Format(time.DateOnly)
	}
	for i := range c.hours {
		c.hours[i].Name = fmt.Sprintf("%02d:00", i)
	}
	return c
}

func (c *timeCounter) add(r RequestIndex) {
	if r.Decided == 0 {
		return
	}
	at := time.UnixMilli(r.Decided).In(c.zone)
	c.hours[at.Hour()].add(r.Outcome)
	if i := dayNumber(at) - c.firstDay; i >= 0 && i < len(c.days) {
		c.days[i].add(r.Outcome)
	}
}

// dayNumber returns the number of days from 1970-01-01 to the date of a time in its zone.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / int64(day/time.Second))
}
