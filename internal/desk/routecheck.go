package desk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk/hours"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

const maxSteps = 50

// Check returns all errors of the route.
func (r Route) Check() error {
	c := r.check()
	if len(c.errs) == 0 {
		c.checkReachable()
	}
	return errors.Join(c.errs...)
}

// check omits the slow checks, because it runs for every request.
func (r Route) check() *routeCheck {
	c := &routeCheck{route: r}
	if r.Name == "" {
		c.errorf("name is missing")
	}
	if r.MinRemaining < 0 || r.Cap < 0 || r.Grace < 0 {
		c.errorf("min_remaining, cap and grace_after_outage cannot be negative")
	}
	if len(r.Steps) > maxSteps {
		c.errorf("%d steps; the maximum is %d", len(r.Steps), maxSteps)
	}
	c.checkRegions()
	for i := range r.Steps {
		c.checkStep(i)
	}
	c.checkExpiry()
	c.checkClock()
	return c
}

type routeCheck struct {
	route Route
	errs  []error
}

func (c *routeCheck) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("route %q: "+format, append([]any{c.route.Name}, args...)...))
}

func (c *routeCheck) checkRegions() {
	var names []string
	for _, region := range c.route.Regions {
		for _, err := range region.Check() {
			c.errorf("%w", err)
		}
		if slices.Contains(names, region.Name) {
			c.errorf("region %q is defined twice", region.Name)
		}
		names = append(names, region.Name)
	}
}

func (c *routeCheck) checkStep(i int) {
	s := c.route.Steps[i]
	number := i + 1
	if s.At < 0 {
		c.errorf("step %d: %s is negative", number, s.At)
	}
	if i > 0 && s.At < c.route.Steps[i-1].At {
		c.errorf("step %d at %s is after step %d at %s: sort the steps by time", number, s.At, i, c.route.Steps[i-1].At)
	}
	if does := countTrue(len(s.Notify) > 0, len(s.Remind) > 0, len(s.Page) > 0, s.Expire != ""); does > 1 || does == 0 && len(s.Widen) == 0 {
		c.errorf("step %d needs exactly one of notify, remind, page, expire and widen", number)
	}
	if len(s.Widen) > 0 && countTrue(len(s.Remind) > 0, len(s.Page) > 0, s.Expire != "") > 0 {
		c.errorf("step %d: widen is allowed alone or with notify", number)
	}
	if s.Severity != "" && len(s.Page) == 0 {
		c.errorf("step %d: severity is allowed for page only", number)
	}
	if s.Expire != "" && len(s.SkipIf) > 0 {
		c.errorf("step %d: expire cannot be skipped", number)
	}
	for _, target := range s.targets() {
		if !isTarget(target) {
			c.errorf("step %d: unknown target %q: use inbox, region, approvers, requester, claimer, or a kind and a name such as group:dba", number, target)
		}
	}
	for _, who := range s.Widen {
		if !requirement.IsPrincipal(who) || who == requirement.Requester {
			c.errorf("step %d: %q is not an approver", number, who)
		}
	}
	for _, condition := range s.SkipIf {
		if !slices.Contains([]SkipCondition{SkipIfViewed, SkipIfClaimed, SkipIfClarificationOpen, SkipIfVoted}, condition) {
			c.errorf("step %d: unknown skip_if condition %q", number, condition)
		}
	}
	if s.targetsRegion() {
		c.checkRegionTarget(number)
	}
}

func (c *routeCheck) checkRegionTarget(number int) {
	if len(c.route.Regions) == 0 {
		c.errorf("step %d targets a region, but the route has no regions", number)
	}
	for _, region := range c.route.Regions {
		if !isTarget(region.Channel) || region.Channel == TargetRegion {
			c.errorf("step %d targets a region, but region %q has no channel", number, region.Name)
		}
	}
}

func (c *routeCheck) checkExpiry() {
	var at []int
	for i, s := range c.route.Steps {
		if s.Expire != "" {
			at = append(at, i)
		}
	}
	switch {
	case len(at) == 0:
		c.errorf("no expire step: the last step must be expire")
	case len(at) > 1:
		c.errorf("%d expire steps; only one is allowed", len(at))
	case at[0] != len(c.route.Steps)-1:
		c.errorf("no step is allowed after step %d, expire", at[0]+1)
	case c.route.Steps[at[0]].At == 0:
		c.errorf("expire at 0s is not allowed")
	}
}

func (c *routeCheck) checkClock() {
	r := c.route
	if !slices.Contains([]ClockKind{"", WallClock, BusinessClock}, r.Clock) {
		c.errorf("unknown clock %q: use wall or business", r.Clock)
	}
	if r.Clock == BusinessClock && len(r.Regions) == 0 {
		c.errorf("the business clock requires a region with hours")
	}
	if !slices.Contains([]DeadlineFrom{"", DeadlineFromCreated, DeadlineFromDelivered}, r.DeadlineFrom) {
		c.errorf("unknown deadline_from %q: use created or delivered", r.DeadlineFrom)
	}
	if r.DeadlineFrom == DeadlineFromDelivered && r.Cap == 0 {
		c.errorf("deadline_from: delivered requires a cap, so that undelivered requests expire too")
	}
	if i := r.expiryStep(); i >= 0 && r.Cap > 0 && r.Clock != BusinessClock && r.Cap < r.Steps[i].At {
		c.errorf("cap %s is shorter than expire at %s", r.Cap, r.Steps[i].At)
	}
}

// checkReachable finds requests that would expire before anyone is notified, because every region
// is closed.
func (c *routeCheck) checkReachable() {
	r := c.route
	if !r.Steps[0].targetsRegion() {
		return
	}
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	bare := r
	bare.Regions = slices.Clone(r.Regions)
	for i := range bare.Regions {
		bare.Regions[i].Holidays = nil // ignore holidays: they are temporary
	}
	for t := monday; t.Before(monday.AddDate(0, 0, 7)); t = t.Add(30 * time.Minute) {
		_, notified, err := hours.PickRegion(bare.Regions, t, time.Duration(r.MinRemaining))
		if err != nil {
			c.errorf("no region is ever open for %s", r.MinRemaining)
			return
		}
		if deadline := bare.deadline(t, time.Time{}, 0); !deadline.After(notified) {
			c.errorf("a request created on %s UTC would expire at %s, before the first notice at %s",
				t.Format("Mon 15:04"), deadline.Format("Mon 15:04"), notified.Format("Mon 15:04"))
			return
		}
	}
}

// deadline returns the deadline of a request. delivered is zero before the first delivery. most is
// the requirement's limit, or 0.
func (r Route) deadline(created, delivered time.Time, most timespan.Duration) time.Time {
	expire := r.Steps[r.expiryStep()].At
	last := created.Add(time.Duration(r.Cap))
	var over time.Time
	switch {
	case r.DeadlineFrom != DeadlineFromDelivered:
		over = r.addTime(created, expire)
		if r.Cap > 0 { // the next business hours may be far away
			over = earliest(over, last)
		}
	case delivered.IsZero():
		over = last
	default:
		over = earliest(r.addTime(delivered, expire), last)
	}
	if most > 0 {
		over = earliest(over, created.Add(time.Duration(most)))
	}
	return over.UTC()
}

// earliest returns the earliest of the times that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func countTrue(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
