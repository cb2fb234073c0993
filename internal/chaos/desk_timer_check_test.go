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

	"github.com/fermata-go/fermata/internal/desk"
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

// isObsolete reports whether a notice or a delivery was dropped because its request was closed.
func isObsolete(n desk.Notice, state string) bool {
	invites := n.Kind == desk.NoticeNotify || n.Kind == desk.NoticeRemind || n.Kind == desk.NoticePage
	return invites && state == "obsolete"
}

// result is what became of a notice, as the executor stores it.
func (n noticeRecord) result() string {
	var index struct{ Result string }
	if json.Unmarshal(n.paper.Index, &index) != nil {
		return ""
	}
	return index.Result
}

// state is the state of a delivery.
func (d deliveryRecord) state() string {
	var index struct{ State string }
	if json.Unmarshal(d.paper.Index, &index) != nil {
		return ""
	}
	return index.State
}

// replaced matches the end of the key of a message that replaces a copy: the revision.
var replaced = regexp.MustCompile(`/r\d+$`)

// deliveryOf returns the id of the delivery of a message.
func deliveryOf(n desk.Notice) string {
	if n.Kind == desk.NoticeRerender {
		return replaced.ReplaceAllString(n.Key, "")
	}
	return n.Key
}

// checkDeliveries checks that each notice is in the outbox once and has a delivery for each of its
// targets, that each delivery was sent as stored, that nothing is left, and that nothing else was
// sent.
func (d *requestRecord) checkDeliveries(complain reportFunc) {
	told := make(map[string]int)
	for _, t := range d.tellings {
		told[deliveryOf(t.Notice)]++
	}
	type target struct{ notice, name string }
	known, targets := make(map[string]deliveryRecord), make(map[target]bool)
	for _, one := range d.sent {
		known[one.paper.ID], targets[target{one.Notice.Key, one.Target}] = one, true
		if told[one.paper.ID] == 0 && !isObsolete(one.Notice, one.state()) {
			complain(toldOnce, "%s was not sent: %s", one.paper.ID, one.paper.Index)
		}
		if !one.paper.DueAt.IsZero() {
			complain(toldOnce, "the delivery %s is not completed: %s, due %s", one.paper.ID, one.paper.Index, one.paper.DueAt)
		}
	}
	seen := make(map[string]bool)
	for _, n := range d.notices {
		if seen[n.Key] {
			complain(toldOnce, "the outbox has the notice %s twice", n.Key)
		}
		seen[n.Key] = true
		if !n.paper.DueAt.IsZero() {
			complain(toldOnce, "the notice %s is not completed: %s, due %s", n.Key, n.paper.Index, n.paper.DueAt)
		}
		for _, name := range n.Targets {
			if !targets[target{n.Key, name}] && !isObsolete(n.Notice, n.result()) {
				complain(toldOnce, "%s was not delivered to %s: %s", n.Key, name, n.paper.Index)
			}
		}
	}
	for _, t := range d.tellings {
		one, ok := known[deliveryOf(t.Notice)]
		if !ok || one.Notice.Incident != t.Notice.Incident || len(t.Notice.Targets) != 1 || t.Notice.Targets[0] != one.Target || t.Notice.Kind != desk.NoticeRerender && t.Notice.Kind != one.Notice.Kind {
			complain(durable, "sent %+v at %.3fs by replica %d, but the delivery is %+v", t.Notice, t.at.Seconds(), t.Life, one.Notice)
		}
	}
}

// afterPage matches the end of the key of a resolve notice that follows a late page: the delivery
// of the page, the attempt and the revision.
var afterPage = regexp.MustCompile(`#[^#/]+/resolve(-\d+)?@\d+$`)

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
			if len(n.Targets) == 1 && slices.Contains(late.Targets, n.Targets[0]) {
				targets = n.Targets
			}
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
	last := make(map[string]receivedNotice) // by incident and target
	for _, t := range d.tellings {
		if key := t.Notice.Incident + " " + strings.Join(t.Notice.Targets, " "); t.Notice.Incident != "" && t.at > last[key].at {
			last[key] = t
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
	for _, one := range d.sent {
		fmt.Fprintf(&text, "  delivery %s: %s, next %s\n", one.paper.ID, one.paper.Index, one.paper.DueAt.Format("15:04:05.000000"))
	}
	for _, t := range d.tellings {
		fmt.Fprintf(&text, "  delivered %9.3fs by replica %d: %s\n", t.at.Seconds(), t.Life, t.Notice.Key)
	}
	return text.String()
}
