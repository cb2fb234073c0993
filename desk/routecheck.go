package desk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/desk/hours"
)

const maxSteps = 50

// Check returns everything that is wrong with the route, all at once.
func (r Route) Check() error {
	c := r.check()
	if len(c.errs) == 0 {
		c.checkReachable()
	}
	return errors.Join(c.errs...)
}

// check leaves out what takes long: every request has its route checked.
func (r Route) check() *routeCheck {
	c := &routeCheck{route: r}
	if r.Name == "" {
		c.errorf("it has no name")
	}
	if r.MinRemaining < 0 || r.Cap < 0 || r.Grace < 0 {
		c.errorf("min_remaining, cap and grace_after_outage cannot be negative")
	}
	if len(r.Steps) > maxSteps {
		c.errorf("%d steps are more than %d", len(r.Steps), maxSteps)
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
			c.errorf("region %q is there twice", region.Name)
		}
		names = append(names, region.Name)
	}
}

func (c *routeCheck) checkStep(i int) {
	s := c.route.Steps[i]
	number := i + 1
	if s.At < 0 {
		c.errorf("step %d: %s is before the asking", number, s.At)
	}
	if i > 0 && s.At < c.route.Steps[i-1].At {
		c.errorf("step %d at %s comes after step %d at %s: put them in order", number, s.At, i, c.route.Steps[i-1].At)
	}
	if does := countTrue(len(s.Notify) > 0, len(s.Remind) > 0, len(s.Page) > 0, s.Expire != ""); does > 1 || does == 0 && len(s.Widen) == 0 {
		c.errorf("step %d needs one of notify, remind, page, expire and widen", number)
	}
	if len(s.Widen) > 0 && countTrue(len(s.Remind) > 0, len(s.Page) > 0, s.Expire != "") > 0 {
		c.errorf("step %d: widen stands alone or with notify", number)
	}
	if s.Severity != "" && len(s.Page) == 0 {
		c.errorf("step %d: only a page has a severity", number)
	}
	if s.Expire != "" && len(s.SkipIf) > 0 {
		c.errorf("step %d: expire cannot be skipped", number)
	}
	for _, target := range s.targets() {
		if !isTarget(target) {
			c.errorf("step %d: %q is no target: use inbox, region, approvers, requester, claimer, or a kind and a name as in group:dba", number, target)
		}
	}
	for _, who := range s.Widen {
		if !isPrincipal(who) || who == PrincipalRequester {
			c.errorf("step %d: %q names nobody who could decide", number, who)
		}
	}
	for _, condition := range s.SkipIf {
		if !slices.Contains([]SkipCondition{SkipIfViewed, SkipIfClaimed, SkipIfClarificationOpen, SkipIfVoted}, condition) {
			c.errorf("step %d: skip_if does not know %q", number, condition)
		}
	}
	if s.targetsRegion() {
		c.checkRegionTarget(number)
	}
}

func (c *routeCheck) checkRegionTarget(number int) {
	if len(c.route.Regions) == 0 {
		c.errorf("step %d tells a region, and there is none", number)
	}
	for _, region := range c.route.Regions {
		if !isTarget(region.Channel) || region.Channel == TargetRegion {
			c.errorf("step %d tells a region, and region %q has no channel", number, region.Name)
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
		c.errorf("it never expires: the last step must")
	case len(at) > 1:
		c.errorf("it expires %d times", len(at))
	case at[0] != len(c.route.Steps)-1:
		c.errorf("nothing can happen after step %d, expire", at[0]+1)
	case c.route.Steps[at[0]].At == 0:
		c.errorf("it expires at once")
	}
}

func (c *routeCheck) checkClock() {
	r := c.route
	if !slices.Contains([]ClockKind{"", WallClock, BusinessClock}, r.Clock) {
		c.errorf("unknown clock %q: it is wall or business", r.Clock)
	}
	if r.Clock == BusinessClock && len(r.Regions) == 0 {
		c.errorf("the business clock needs a region with hours")
	}
	if !slices.Contains([]DeadlineFrom{"", DeadlineFromCreated, DeadlineFromDelivered}, r.DeadlineFrom) {
		c.errorf("unknown deadline_from %q: it is created or delivered", r.DeadlineFrom)
	}
	if r.DeadlineFrom == DeadlineFromDelivered && r.Cap == 0 {
		c.errorf("a deadline from delivery needs a cap: what is never delivered must end too")
	}
	if i := r.expiryStep(); i >= 0 && r.Cap > 0 && r.Clock != BusinessClock && r.Cap < r.Steps[i].At {
		c.errorf("the cap of %s is shorter than the %s to expire", r.Cap, r.Steps[i].At)
	}
}

// reachable finds requests that would be over before anybody is told: those that come when every region sleeps.
func (c *routeCheck) checkReachable() {
	r := c.route
	if !r.Steps[0].targetsRegion() {
		return
	}
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	bare := r
	bare.Regions = slices.Clone(r.Regions)
	for i := range bare.Regions {
		bare.Regions[i].Holidays = nil // they pass
	}
	for t := monday; t.Before(monday.AddDate(0, 0, 7)); t = t.Add(30 * time.Minute) {
		_, told, err := hours.PickRegion(bare.Regions, t, time.Duration(r.MinRemaining))
		if err != nil {
			c.errorf("no region is ever open for %s", r.MinRemaining)
			return
		}
		if over := bare.deadline(t, time.Time{}, 0); !over.After(told) {
			c.errorf("what is asked on %s UTC would be over at %s, before anybody is told at %s",
				t.Format("Mon 15:04"), over.Format("Mon 15:04"), told.Format("Mon 15:04"))
			return
		}
	}
}

// deadline is when a request that was asked at created is over. Delivered is zero if nobody was reached yet; most is the
// requirement's own limit, or 0.
func (r Route) deadline(created, delivered time.Time, most Duration) time.Time {
	expire := r.Steps[r.expiryStep()].At
	last := created.Add(time.Duration(r.Cap))
	var over time.Time
	switch {
	case r.DeadlineFrom != DeadlineFromDelivered:
		over = r.addTime(created, expire)
		if r.Cap > 0 { // business hours may be far away
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

// earliest is the first of the times that are set.
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
