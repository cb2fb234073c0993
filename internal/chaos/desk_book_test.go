//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// The invariants, as far as they are about the desk.
const (
	oneEnd     invariant = "I1: each request has one end, and all books agree about it"
	wordCounts invariant = "I2: who is told that their word counts is counted, and who is told that it does not is not"
	twoPayers  invariant = "I4: nothing is approved but by two payers who do not ask for it themselves"
	asMeant    invariant = "I6: what they meant is what is approved, and what is done"
	toldOnce   invariant = "I10: each notice is told, and again only if whoever told it died or was cut off"
	allClear   invariant = "I10: whoever was paged gets one all-clear"
	chained    invariant = "I12: the audit log verifies, and has one line that settles each request"
)

// docket is everything that is known of one request.
type docket struct {
	account   string
	world     time.Time // when it began
	run       store.History
	interrupt store.Interrupt
	doc       desk.Request
	notices   []posted
	lines     []audit.Record // about it, in order
	attempts  []*attempt     // decisions on it, and acts
	deeds     []deed         // of its run
	tellings  []telling      // about it
}

// posted is a notice in the outbox.
type posted struct {
	desk.Notice
	paper store.Paper
}

// key names it in reports.
func (d *docket) key() string { return d.run.Run.StateKey }

// readDockets reads everything that the store knows of an account, and finds what others know of it.
func readDockets(ctx context.Context, s store.Store, account string, e evidence, told []telling) (list []*docket, err error) {
	runs, err := readRuns(ctx, s, account)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*docket)
	byKey := make(map[string]*docket)
	for _, h := range runs {
		for _, i := range h.Interrupts {
			d := &docket{account: account, run: h, interrupt: i}
			if err := d.readPapers(); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Run.StateKey, err)
			}
			byID[i.ID], byKey[h.Run.StateKey] = d, d
			list = append(list, d)
		}
	}
	for record, err := range audit.Records(audit.Over(s).Records(ctx, account, 0, 0)) {
		if err != nil {
			return nil, err
		}
		if d := byID[record.Place.Request]; d != nil {
			d.lines = append(d.lines, record)
		}
	}
	for _, a := range e.attempts {
		for id := range a.Targets {
			if d := byID[id]; d != nil && a.Account == account && a.verb == doDecide {
				d.attempts = append(d.attempts, a)
			}
		}
		if a.Act != nil && a.Account == account && byID[a.Act.Request] != nil {
			d := byID[a.Act.Request]
			d.attempts = append(d.attempts, a)
		}
	}
	for _, deed := range e.deeds {
		if d := byKey[deed.Action.Order]; d != nil {
			d.deeds = append(d.deeds, deed)
		}
	}
	for _, t := range told {
		if d := byID[t.Notice.Request]; d != nil && t.Account == account {
			d.tellings = append(d.tellings, t)
		}
	}
	return list, nil
}

// The kinds of papers that are read here. They are the executor's own words, and old ones stay readable.
const noticePaper store.PaperKind = "notice"

func (d *docket) readPapers() (err error) {
	for _, paper := range d.run.Papers {
		switch {
		case paper.Kind == store.RequestPaper && paper.ID == d.interrupt.ID:
			if d.doc, err = desk.Decode(through(paper.Body)); err != nil {
				return err
			}
		case paper.Kind == noticePaper:
			n := posted{paper: paper}
			if err := json.Unmarshal(through(paper.Body), &n.Notice); err != nil {
				return err
			}
			if n.Request == d.interrupt.ID {
				d.notices = append(d.notices, n)
			}
		}
	}
	if d.doc.ID == "" {
		return fmt.Errorf("%s has no request", d.interrupt.ID)
	}
	return nil
}

// check holds what is known of a request against itself.
func (d *docket) check() (found []violation) {
	for _, check := range []func(complain){
		d.ended, d.inTime, d.words, d.answers, d.recount, d.binding, d.effect, d.acts, d.steps, d.posts, d.pages, d.cleared,
	} {
		check(func(broken invariant, format string, args ...any) {
			found = append(found, violation{broken, d.key(), fmt.Sprintf(format, args...)})
		})
	}
	return found
}

// complain notes what must not be.
type complain func(broken invariant, format string, args ...any)

// ends are how the store, the desk and the log speak of the same end.
var ends = map[desk.Outcome]struct {
	state   store.InterruptState
	verdict store.Verdict
	source  store.Source
	result  string // of the run
}{
	desk.Approved: {store.Decided, store.Approve, store.Person, wasDone},
	desk.Rejected: {store.Decided, store.Reject, store.Person, wasRejected},
	desk.Lapsed:   {store.Decided, store.Expired, store.Clock, wasExpired},
	desk.Dropped:  {store.Withdrawn, "", "", ""},
}

// settling is how a line of the log ends a request; "" if it does not.
func settling(line audit.Record) desk.Outcome {
	switch body := line.Body.(type) {
	case audit.Expired:
		return desk.Lapsed
	case audit.Withdrawn:
		return desk.Dropped
	case audit.Decided:
		switch {
		case !body.Settles:
		case body.Verb == audit.Reject:
			return desk.Rejected
		default:
			return desk.Approved
		}
	default: // it says something else
	}
	return ""
}

// ended: the run is over, the request has one end, and the run, the store, the request and the log say the same of it.
func (d *docket) ended(complain complain) {
	if d.run.Run.Status.Alive() {
		complain(settles, "it is %s after %d attempts", d.run.Run.Status, d.run.Run.Attempts)
	}
	if d.doc.State == desk.Open || d.doc.Final == nil {
		complain(oneEnd, "the request is %s, the store has %s", d.doc.State, describe(&d.interrupt))
		return
	}
	outcome := d.doc.Final.Outcome
	end, known := ends[outcome]
	i := d.interrupt
	if !known || i.State != end.state || i.Verdict != end.verdict || i.Source != end.source {
		complain(oneEnd, "the request ended with %s, the store has %s by %q", outcome, describe(&i), i.Source)
	}
	var settled []desk.Outcome
	for _, line := range d.lines {
		if how := settling(line); how != "" {
			settled = append(settled, how)
		}
	}
	if len(settled) != 1 || settled[0] != outcome {
		complain(chained, "the log settles it with %q, the request with %s", settled, outcome)
	}
	count := 0
	for _, e := range d.run.Events {
		if e.Interrupt == i.ID && (e.Kind == store.EventDecided || e.Kind == store.EventExpired || e.Kind == store.EventWithdrawn) {
			count++
		}
	}
	if count != 1 {
		complain(oneEnd, "%d events end it", count)
	}
	if d.run.Run.Status == store.Completed && !strings.HasPrefix(d.result(), end.result) {
		complain(noBypass, "the request ended with %s, the run with %q", outcome, d.result())
	}
}

// result is what came of the payment, as its run has it.
func (d *docket) result() string {
	outcome, err := fermata.UnmarshalOutcome(through(d.run.Run.Outcome))
	done, ok := outcome.(fermata.Completed)
	var p payment
	if err != nil || !ok || json.Unmarshal(done.Output, &p) != nil {
		return ""
	}
	return p.Result
}

// inTime: people decide before the deadline, the clock after it, and there is one deadline.
func (d *docket) inTime(complain complain) {
	i, final := d.interrupt, d.doc.Final
	if final == nil {
		return
	}
	if late := i.Deadline.Sub(d.doc.Deadline); late < 0 || late > time.Microsecond {
		complain(oneTimer, "the deadline of the request is %s, that of the store %s", d.doc.Deadline, i.Deadline)
	}
	switch final.Outcome {
	case desk.Lapsed:
		if i.At.Before(i.Deadline) || final.At.Before(d.doc.Deadline) {
			complain(oneTimer, "expired before its time: at %s, by the desk at %s; %s", i.At, final.At, describe(&i))
		}
	case desk.Approved, desk.Rejected:
		if !i.At.Before(i.Deadline) || !final.At.Before(d.doc.Deadline) {
			complain(oneTimer, "decided after its deadline: at %s, by the desk at %s; %s", i.At, final.At, describe(&i))
		}
	case desk.Dropped, desk.Escaped, desk.Responded:
	}
}

// effect: what was approved is done once, and nothing else is.
func (d *docket) effect(complain complain) {
	approved := d.interrupt.Verdict == store.Approve
	switch {
	case !approved && len(d.deeds) > 0:
		complain(approvedOnly, "it was done %d times; %s", len(d.deeds), describe(&d.interrupt))
	case len(d.deeds) > 1:
		complain(onceOnly, "it was done %d times", len(d.deeds))
	case approved && len(d.deeds) == 0 && d.run.Run.Status == store.Completed:
		complain(decisionCounts, "it was approved and not done; %s", describe(&d.interrupt))
	}
	for _, deed := range d.deeds {
		if digest := digestOf(pay, deed.Action); approved && digest != d.interrupt.Final {
			complain(asMeant, "done was %+v; %s", deed.Action, describe(&d.interrupt))
		}
	}
}

// acts: what somebody was told to have done with the request is there, once.
func (d *docket) acts(complain complain) {
	for _, a := range d.attempts {
		if a.Act == nil || a.Act.Name != desk.NameComment {
			continue
		}
		count := 0
		for _, note := range d.doc.Comments {
			if note.Text == a.Act.Text {
				count++
			}
		}
		if count > 1 || a.got != 0 && (a.answer.Said == saidDone) != (count == 1) {
			complain(durable, "%s\n        but the comment is there %d times", a, count)
		}
	}
}

// audited: the log of an account verifies, and agrees with all that the store knows.
func audited(ctx context.Context, s store.Store, account string, dockets []*docket) (found []violation, err error) {
	if report, err := audit.Verify(ctx, audit.Over(s), account, audit.Against{}, io.Discard); err != nil {
		found = append(found, violation{chained, account, fmt.Sprintf("%v: %+v", err, report)})
	}
	e, err := executor.New(executor.Config{Store: s, Box: glass{}})
	if err != nil {
		return nil, err
	}
	findings, err := e.Reconcile(ctx, account)
	for _, finding := range findings {
		key := account
		if n := slices.IndexFunc(dockets, func(d *docket) bool { return d.interrupt.ID == finding.Interrupt }); n >= 0 {
			key = dockets[n].key()
		}
		found = append(found, violation{chained, key, fmt.Sprintf("%+v", finding)})
	}
	return found, err
}

// sortedAttempts are those that were answered, in the order of their answers.
func sortedAttempts(list []*attempt) []*attempt {
	answered := slices.DeleteFunc(slices.Clone(list), func(a *attempt) bool { return a.got == 0 })
	slices.SortFunc(answered, func(a, b *attempt) int { return int(a.got - b.got) })
	return answered
}
