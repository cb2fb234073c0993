//go:build unix

package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/desk"
)

// routeStep is a step of a route in one epoch.
type routeStep struct{ epoch, step string }

// stepNotice returns the key of the notice of a step.
func (d *requestRecord) stepNotice(t routeStep) string {
	return fmt.Sprintf("%s/e%s/s%s", d.doc.ID, t.epoch, t.step)
}

// checkSteps checks that each step is processed once, not too early and not after the decision.
// Each step that fired for a target has one notice; no other notice comes from a step.
func (d *requestRecord) checkSteps(complain reportFunc) {
	seen, ended := make(map[routeStep]bool), false
	wanted := make(map[string]bool)
	hurried := make(map[int64]bool) // revisions with a manual escalation
	for _, e := range d.doc.Log {
		switch e.Type {
		case desk.EventEscalated:
			hurried[e.Rev] = true
		case desk.EventDecided:
			ended = true
		case desk.EventRouteStep:
			t := routeStep{e.Detail["epoch"], e.Detail["step"]}
			if seen[t] || ended {
				complain(oneTimer, "step %s of epoch %s is processed again, or after the decision, at %s", t.step, t.epoch, e.At)
			}
			seen[t] = true
			step := d.step(t)
			if due := d.doc.Created.Add(time.Duration(step.At)); e.At.Before(due) && !hurried[e.Rev] {
				complain(oneTimer, "step %s of epoch %s fired at %s, but is due at %s", t.step, t.epoch, e.At, due)
			}
			if e.Detail["as"] == string(desk.StepFired) && len(step.Notify)+len(step.Remind)+len(step.Page) > 0 {
				wanted[d.stepNotice(t)] = true
			}
		}
	}
	have := make(map[string]int)
	for _, n := range d.notices {
		if n.Step > 0 {
			key := d.stepNotice(routeStep{fmt.Sprint(n.Epoch), fmt.Sprint(n.Step)})
			have[key]++
			if !wanted[key] {
				complain(oneTimer, "there is a notice of step %d of epoch %d, which did not fire", n.Step, n.Epoch)
			}
		}
	}
	for key := range wanted {
		if have[key] != 1 {
			complain(oneTimer, "%d notices of %s", have[key], key)
		}
	}
}

// step returns the step of the route.
func (d *requestRecord) step(t routeStep) desk.Step {
	var n int
	if _, err := fmt.Sscan(t.step, &n); err != nil || n < 1 || n > len(d.doc.Route.Steps) {
		return desk.Step{}
	}
	return d.doc.Route.Steps[n-1]
}

// missed returns the steps that were never processed, although they were overdue by so much at the
// decision. A crash or a cut may delay a step; the test as a whole limits their number.
func (d *requestRecord) missed(by time.Duration) (list []string) {
	if d.doc.Decision == nil || !d.doc.Snoozed.IsZero() {
		return nil
	}
	for n, step := range d.doc.Route.Steps {
		done := slices.ContainsFunc(d.doc.RouteProgress.DoneSteps, func(done desk.StepResult) bool { return done.Step == n })
		if due := d.doc.RouteProgress.Base.Add(time.Duration(step.At)); step.Expire == "" && !done && d.doc.Decision.At.Sub(due) > by {
			list = append(list, fmt.Sprintf("%s: step %d was due %s before the decision", d.key(), n+1, d.doc.Decision.At.Sub(due)))
		}
	}
	return list
}

// isObsolete reports whether a notice was dropped because its request was closed.
func (n noticeRecord) isObsolete() bool {
	invites := n.Kind == desk.NoticeNotify || n.Kind == desk.NoticeRemind || n.Kind == desk.NoticePage
	return invites && n.deliveryState().Result == "moot"
}

// delivery is the delivery state of a notice, as the executor stores it.
type delivery struct {
	Tries  int    `json:"tries"`
	Result string `json:"result"`
}

func (n noticeRecord) deliveryState() (d delivery) {
	if json.Unmarshal(n.paper.Index, &d) != nil {
		return delivery{}
	}
	return d
}

// checkDeliveries checks that each notice is in the outbox once and was delivered as stored, that
// nothing is left, and that nothing else was delivered.
func (d *requestRecord) checkDeliveries(complain reportFunc) {
	known := make(map[string]desk.Notice)
	told := make(map[string]int)
	for _, t := range d.tellings {
		told[t.Notice.Key]++
	}
	for _, n := range d.notices {
		if _, twice := known[n.Key]; twice {
			complain(toldOnce, "the outbox has the notice %s twice", n.Key)
		}
		known[n.Key] = n.Notice
		if told[n.Key] == 0 && !n.isObsolete() {
			complain(toldOnce, "%s was not delivered: %s", n.Key, n.paper.Index)
		}
		if !n.paper.DueAt.IsZero() {
			complain(toldOnce, "the notice %s is not completed: %s, due %s", n.Key, n.paper.Index, n.paper.DueAt)
		}
	}
	for _, t := range d.tellings {
		if n, ok := known[t.Notice.Key]; !ok || !sameJSON(n, t.Notice) {
			complain(durable, "delivered %+v at %.3fs by replica %d, but the outbox has %+v", t.Notice, t.at.Seconds(), t.Life, n)
		}
	}
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// afterPage matches the end of the key of a resolve notice that follows a late page: the attempt
// and the revision.
var afterPage = regexp.MustCompile(`/resolve(-\d+)?@\d+$`)

// checkPages checks that paged targets get one resolve notice at the decision, and one more for
// each page in progress then; no other target gets one.
func (d *requestRecord) checkPages(complain reportFunc) {
	var paged []string
	resolved := 0
	pages := make(map[string]desk.Notice)
	for _, n := range d.notices {
		if n.Kind == desk.NoticePage {
			paged = append(paged, n.Targets...)
			pages[n.Key] = n.Notice
		}
	}
	for _, n := range d.notices {
		if n.Kind != desk.NoticeResolve {
			continue
		}
		targets := d.doc.RouteProgress.Paged
		if late, known := pages[afterPage.ReplaceAllString(n.Key, "")]; known {
			targets = late.Targets
		} else {
			resolved++
		}
		for _, page := range pages {
			if n.Incident != page.Incident || !slices.Equal(n.Targets, targets) {
				complain(allClear, "%q were paged for %s, but the resolve notice is %+v", targets, page.Incident, n.Notice)
			}
		}
	}
	slices.Sort(paged)
	paged = slices.Compact(paged)
	if known := slices.Sorted(slices.Values(d.doc.RouteProgress.Paged)); !slices.Equal(paged, known) {
		complain(allClear, "the request has paged %q, but the outbox %q", known, paged)
	}
	if want := min(1, len(paged)); resolved != want {
		complain(allClear, "%q were paged, but there are %d resolve notices", paged, resolved)
	}
}

// checkResolved checks that the last delivery to paged targets is a resolve notice. Otherwise an
// incident stays open for a closed request.
func (d *requestRecord) checkResolved(complain reportFunc) {
	last := make(map[string]receivedNotice) // by incident
	for _, t := range d.tellings {
		if t.Notice.Incident != "" && t.at > last[t.Notice.Incident].at {
			last[t.Notice.Incident] = t
		}
	}
	for incident, t := range last {
		if t.Notice.Kind != desk.NoticeResolve {
			complain(allClear, "the last delivery of %s is %s, at %.3fs by replica %d", incident, t.Notice.Key, t.at.Seconds(), t.Life)
		}
	}
}

// faultLog has the faults of replicas that explain duplicate deliveries.
type faultLog struct {
	ends map[int64]exitState // all are gone
	cuts []cut
	// rest is the first replica that delivered notices of dead ones. failed reports whether a
	// replica logged that it could not record a delivery.
	rest   int64
	failed func(life int64, key string) bool
}

// noticeLease is how long the executor leases a notice.
const noticeLease = time.Minute

// noticeTimeout is how long a healthy replica takes to record a delivery at most.
const noticeTimeout = 10 * time.Second

// staleConns is how long a replica may not notice a cut connection.
const staleConns = 2 * time.Second

// excuse returns why a delivery may be repeated later, or "" if no fault explains it.
func (f *faultLog) excuse(t, later receivedNotice, began time.Time) string {
	until := min(t.at+noticeTimeout, later.came)
	// perhaps during the delivery
	if end, gone := f.ends[t.Life]; gone && end.at.Sub(began) <= until {
		return "died"
	}
	slot := f.ends[t.Life].slot
	for _, c := range f.cuts {
		if (c.slot == slot || c.slot == everywhere) && c.to >= t.came-staleConns && c.from <= until {
			return "cut off"
		}
	}
	if (later.Life >= f.rest || later.came-t.came >= noticeLease) && f.failed(t.Life, t.Notice.Key) {
		return "could not note it"
	}
	return ""
}

// twice finds duplicate deliveries without an excuse, and counts those with one.
func (f *faultLog) twice(dockets []*requestRecord) (excused map[string]int, found []violation) {
	excused = make(map[string]int)
	for _, d := range dockets {
		last := make(map[string]receivedNotice)
		tellings := slices.Clone(d.tellings)
		slices.SortFunc(tellings, func(a, b receivedNotice) int { return cmp.Compare(a.came, b.came) })
		for _, t := range tellings {
			before, again := last[t.Notice.Key]
			last[t.Notice.Key] = t
			if !again {
				continue
			}
			why := f.excuse(before, t, d.world)
			if excused[why]++; why == "" {
				found = append(found, violation{toldOnce, d.key(), fmt.Sprintf("%s was delivered at %.3fs by replica %d and at %.3fs by replica %d, without a fault of the first",
					t.Notice.Key, before.at.Seconds(), before.Life, t.at.Seconds(), t.Life)})
			}
		}
	}
	return excused, found
}

// describe returns everything that is known of a request.
func (d *requestRecord) describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "request %s is %s, revision %d, requested by %s, from %s to %s\n", d.doc.ID, d.doc.State, d.doc.Rev, d.doc.Subject.Requester,
		d.doc.Created.Format("15:04:05.000000"), d.doc.Deadline.Format("15:04:05.000000"))
	for _, e := range d.doc.Log {
		fmt.Fprintf(&text, "  revision %d at %s: %s %s %v\n", e.Rev, e.At.Format("15:04:05.000000"), e.Type, e, e.Detail)
	}
	for _, line := range d.lines {
		body, _ := json.Marshal(line.Body) // details that cannot be encoded are omitted
		fmt.Fprintf(&text, "  record %d at %s: %s %s %s\n", line.Seq, line.Time.Format("15:04:05.000000"), line.Kind(), line.Actor.Principal, brief(body))
	}
	for _, n := range d.notices {
		fmt.Fprintf(&text, "  notice %s: %s %q, %s, next %s\n", n.paper.ID, n.Kind, n.Targets, n.paper.Index, n.paper.DueAt.Format("15:04:05.000000"))
	}
	for _, t := range d.tellings {
		fmt.Fprintf(&text, "  delivered %9.3fs by replica %d: %s\n", t.at.Seconds(), t.Life, t.Notice.Key)
	}
	return text.String()
}
