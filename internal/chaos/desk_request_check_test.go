//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

// The invariants of the desk.
const (
	oneEnd     invariant = "I1: each request has one decision, and all sources agree on it"
	wordCounts invariant = "I2: an accepted vote is counted, and a refused one is not"
	twoPayers  invariant = "I4: an approval needs two payers other than the requester"
	asMeant    invariant = "I6: what people approved is what is recorded and executed"
	toldOnce   invariant = "I10: each notice is delivered, and again only after a crash or a cut"
	allClear   invariant = "I10: paged targets get one resolve notice"
	chained    invariant = "I12: the audit log verifies, and has one deciding record per request"
)

// requestRecord is everything that is known of one request.
type requestRecord struct {
	account   string
	world     time.Time // the start time
	run       store.History
	interrupt store.Interrupt
	doc       desk.Request
	notices   []noticeRecord
	sent      []deliveryRecord // of the notices
	lines     []audit.Record   // about it, in order
	attempts  []*attempt       // decisions and commands
	deeds     []effectCall     // of its run
	tellings  []receivedNotice // about it
}

// noticeRecord is a notice in the outbox.
type noticeRecord struct {
	desk.Notice
	paper store.Document
}

// deliveryRecord is the delivery of a notice to one target.
type deliveryRecord struct {
	Notice desk.Notice `json:"notice"`
	Target string      `json:"target"`
	paper  store.Document
}

// key is its name in reports.
func (d *requestRecord) key() string { return d.run.Run.StateKey }

// readRequestRecords reads everything in the store of an account, and adds the other sources.
func readRequestRecords(ctx context.Context, s store.Store, account string, e evidence, told []receivedNotice) (list []*requestRecord, err error) {
	runs, err := simtest.Histories(ctx, s, account)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*requestRecord)
	byKey := make(map[string]*requestRecord)
	for _, h := range runs {
		for _, i := range h.Interrupts {
			d := &requestRecord{account: account, run: h, interrupt: i}
			if err := d.readDocuments(); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Run.StateKey, err)
			}
			byID[i.ID], byKey[h.Run.StateKey] = d, d
			list = append(list, d)
		}
	}
	for record, err := range audit.ParseRecords(audit.NewStoreLog(s).Records(ctx, account, 0, 0)) {
		if err != nil {
			return nil, err
		}
		if d := byID[record.Location.Request]; d != nil {
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

// The document kinds that are read here. They belong to the executor, and old ones stay readable.
const (
	noticeDocument   store.DocumentKind = "notice"
	deliveryDocument store.DocumentKind = "delivery"
)

func (d *requestRecord) readDocuments() (err error) {
	for _, paper := range d.run.Documents {
		switch {
		case paper.Kind == store.RequestDocument && paper.ID == d.interrupt.ID:
			if d.doc, err = desk.Decode(unseal(paper.Body)); err != nil {
				return err
			}
		case paper.Kind == noticeDocument:
			n := noticeRecord{paper: paper}
			if err := json.Unmarshal(unseal(paper.Body), &n.Notice); err != nil {
				return err
			}
			if n.Request == d.interrupt.ID {
				d.notices = append(d.notices, n)
			}
		case paper.Kind == deliveryDocument:
			one := deliveryRecord{paper: paper}
			if err := json.Unmarshal(unseal(paper.Body), &one); err != nil {
				return err
			}
			if one.Notice.Request == d.interrupt.ID {
				d.sent = append(d.sent, one)
			}
		}
	}
	if d.doc.ID == "" {
		return fmt.Errorf("%s has no request", d.interrupt.ID)
	}
	return nil
}

// check compares all sources of a request.
func (d *requestRecord) check() (found []violation) {
	for _, check := range []func(reportFunc){
		d.checkDecision, d.checkDeadline, d.checkVotes, d.checkReplies, d.recount, d.checkDigests, d.checkEffect, d.checkCommands, d.checkSteps, d.checkDeliveries, d.checkPages, d.checkResolved,
	} {
		check(func(broken invariant, format string, args ...any) {
			found = append(found, violation{broken, d.key(), fmt.Sprintf(format, args...)})
		})
	}
	return found
}

// reportFunc reports a violation.
type reportFunc func(broken invariant, format string, args ...any)

// outcomeResults are the names of the same outcome in the store, the desk and the audit log.
var outcomeResults = map[desk.Outcome]struct {
	state   store.InterruptState
	verdict store.Verdict
	source  store.Source
	result  string // of the run
}{
	desk.OutcomeApproved:  {store.InterruptDecided, store.VerdictApprove, store.SourcePerson, wasDone},
	desk.OutcomeRejected:  {store.InterruptDecided, store.VerdictReject, store.SourcePerson, wasRejected},
	desk.OutcomeExpired:   {store.InterruptDecided, store.VerdictExpire, store.SourceClock, wasExpired},
	desk.OutcomeWithdrawn: {store.InterruptWithdrawn, "", "", ""},
}

// settling returns the outcome of an audit record that decides a request, or "".
func settling(line audit.Record) desk.Outcome {
	switch body := line.Body.(type) {
	case audit.RequestExpired:
		return desk.OutcomeExpired
	case audit.RequestWithdrawn:
		return desk.OutcomeWithdrawn
	case audit.RequestDecided:
		switch {
		case !body.Settles:
		case body.Verb == audit.VerbReject:
			return desk.OutcomeRejected
		default:
			return desk.OutcomeApproved
		}
	default: // it has another kind
	}
	return ""
}

// checkDecision checks that the run has ended, the request has one decision, and run, store,
// request and audit log agree.
func (d *requestRecord) checkDecision(complain reportFunc) {
	if d.run.Run.Status.Active() {
		complain(settles, "it is %s after %d attempts", d.run.Run.Status, d.run.Run.Attempts)
	}
	if d.doc.State == desk.StateOpen || d.doc.Decision == nil {
		complain(oneEnd, "the request is %s, but the store has %s", d.doc.State, describe(&d.interrupt))
		return
	}
	outcome := d.doc.Decision.Outcome
	end, known := outcomeResults[outcome]
	i := d.interrupt
	if !known || i.State != end.state || i.Verdict != end.verdict || i.Source != end.source {
		complain(oneEnd, "the request was decided with %s, but the store has %s by %q", outcome, describe(&i), i.Source)
	}
	var settled []desk.Outcome
	for _, line := range d.lines {
		if how := settling(line); how != "" {
			settled = append(settled, how)
		}
	}
	if len(settled) != 1 || settled[0] != outcome {
		complain(chained, "the audit log has %q, but the request has %s", settled, outcome)
	}
	count := 0
	for _, e := range d.run.Events {
		if e.Interrupt == i.ID && (e.Kind == store.EventDecided || e.Kind == store.EventExpired || e.Kind == store.EventWithdrawn) {
			count++
		}
	}
	if count != 1 {
		complain(oneEnd, "%d deciding events", count)
	}
	if d.run.Run.Status == store.StatusCompleted && !strings.HasPrefix(d.result(), end.result) {
		complain(noBypass, "the request has the outcome %s, but the run has %q", outcome, d.result())
	}
}

// result returns the result of the payment in its run.
func (d *requestRecord) result() string {
	outcome, err := fermata.UnmarshalOutcome(unseal(d.run.Run.Outcome))
	done, ok := outcome.(fermata.Completed)
	var p payment
	if err != nil || !ok || json.Unmarshal(done.Output, &p) != nil {
		return ""
	}
	return p.Result
}

// checkDeadline checks that people decide before the deadline and the clock after it, and that
// there is one deadline.
func (d *requestRecord) checkDeadline(complain reportFunc) {
	i, final := d.interrupt, d.doc.Decision
	if final == nil {
		return
	}
	if late := i.Deadline.Sub(d.doc.Deadline); late < 0 || late > time.Microsecond {
		complain(oneTimer, "the deadline of the request is %s, but that of the store is %s", d.doc.Deadline, i.Deadline)
	}
	switch final.Outcome {
	case desk.OutcomeExpired:
		if i.DecidedAt.Before(i.Deadline) || final.At.Before(d.doc.Deadline) {
			complain(oneTimer, "expired before the deadline: at %s, by the desk at %s; %s", i.DecidedAt, final.At, describe(&i))
		}
	case desk.OutcomeApproved, desk.OutcomeRejected:
		if !i.DecidedAt.Before(i.Deadline) || !final.At.Before(d.doc.Deadline) {
			complain(oneTimer, "decided after the deadline: at %s, by the desk at %s; %s", i.DecidedAt, final.At, describe(&i))
		}
	case desk.OutcomeWithdrawn, desk.OutcomeAbandoned, desk.OutcomeAnswered:
	}
}

// checkEffect checks that exactly the approved action is executed, once.
func (d *requestRecord) checkEffect(complain reportFunc) {
	approved := d.interrupt.Verdict == store.VerdictApprove
	switch {
	case !approved && len(d.deeds) > 0:
		complain(approvedOnly, "it was executed %d times; %s", len(d.deeds), describe(&d.interrupt))
	case len(d.deeds) > 1:
		complain(onceOnly, "it was executed %d times", len(d.deeds))
	case approved && len(d.deeds) == 0 && d.run.Run.Status == store.StatusCompleted:
		complain(decisionCounts, "it was approved but not executed; %s", describe(&d.interrupt))
	}
	for _, deed := range d.deeds {
		if digest := digestOf(pay, deed.Action); approved && digest != d.interrupt.ApprovedDigest {
			complain(asMeant, "executed was %+v; %s", deed.Action, describe(&d.interrupt))
		}
	}
}

// checkCommands checks that every acknowledged command has taken effect once.
func (d *requestRecord) checkCommands(complain reportFunc) {
	for _, a := range d.attempts {
		if a.Act == nil || a.Act.Name != desk.CommandComment {
			continue
		}
		count := 0
		for _, note := range d.doc.Comments {
			if note.Text == a.Act.Text {
				count++
			}
		}
		if count > 1 || a.got != 0 && (a.answer.Kind == saidDone) != (count == 1) {
			complain(durable, "%s\n        but the comment is stored %d times", a, count)
		}
	}
}

// audited verifies the audit log of an account and reconciles it.
func audited(ctx context.Context, s store.Store, account string, dockets []*requestRecord) (found []violation, err error) {
	if err := simtest.CheckLog(ctx, s, account); err != nil {
		found = append(found, violation{chained, account, err.Error()})
	}
	e, err := executor.New(executor.Config{Store: s, Sealer: plaintextSealer{}})
	if err != nil {
		return nil, err
	}
	findings, err := e.Reconcile(ctx, account)
	for _, finding := range findings {
		key := account
		if n := slices.IndexFunc(dockets, func(d *requestRecord) bool { return d.interrupt.ID == finding.Interrupt }); n >= 0 {
			key = dockets[n].key()
		}
		found = append(found, violation{chained, key, fmt.Sprintf("%+v", finding)})
	}
	return found, err
}

// sortedAttempts returns the attempts with a reply, in the order of the replies.
func sortedAttempts(list []*attempt) []*attempt {
	answered := slices.DeleteFunc(slices.Clone(list), func(a *attempt) bool { return a.got == 0 })
	slices.SortFunc(answered, func(a, b *attempt) int { return int(a.got - b.got) })
	return answered
}
