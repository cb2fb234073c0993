package audit

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Books are the sources that have to agree: what the record says, what was done, and what the runs know. Each may be read once.
type Books struct {
	// Audit are the records of an account, parsed; see [Records].
	Audit iter.Seq2[Record, error]
	// Effects is the ledger, Interrupts what the runs know of their questions, Clicks everything that came in by channels.
	Effects    iter.Seq2[EffectLine, error]
	Interrupts iter.Seq2[InterruptLine, error]
	Clicks     iter.Seq2[ClickLine, error]

	// Payload finds a payload that was not erased. Of Data nothing is needed, only the salt.
	Payload func(id string) (Payload, bool)
	// Member says whether somebody was in a group at a time. Without it nobody's membership is looked at.
	Member func(principal, group string, at time.Time) Membership
	// Now is the time of the reconciliation. What is younger than Grace may still be under way; 0 is 15 minutes.
	Now   time.Time
	Grace time.Duration
}

// EffectLine is a line of the effects ledger.
type EffectLine struct {
	Run, Interrupt string
	Number         int
	// Digest is the plain one of the action with its arguments.
	Digest string
	// Key is what its target knows it by.
	Key          string
	State        EffectState
	Begun, Ended time.Time
}

// InterruptLine is what a run knows of one of its questions.
type InterruptLine struct {
	Run, Interrupt string
	// Outcome is what was decided; empty as long as nothing is.
	Outcome Outcome
	// Applied says that the run has taken the answer, Over that the run no longer asks or is over.
	Applied, Over bool
	// Elsewhere says that what is approved is done by somebody who keeps no ledger here, so that none of it is missed.
	Elsewhere bool
	// OnItsWay says that the answer is sent again and again to somebody elsewhere who does not take it.
	OnItsWay bool
	// Again says that the run has asked about the same once more, because what it acts on had changed: the yes to that is the one that counts.
	Again bool
}

// ClickLine is something that came in by a channel.
type ClickLine struct {
	Key, Surface string
	At           time.Time
}

// Outcome is how a question can be settled, in the words of the runtime.
type Outcome string

// How a question can be settled.
const (
	OutcomeApprove Outcome = "approve"
	OutcomeReject  Outcome = "reject"
	OutcomeAnswer  Outcome = "answer"
	OutcomeExpire  Outcome = "expire"
)

// Membership says whether somebody was in a group.
type Membership int

// Whether somebody was in a group. The zero value says that nobody can tell any more.
const (
	MemberUnknown Membership = iota
	MemberYes
	MemberNo
)

// Severity is how soon somebody should look.
type Severity string

// How soon somebody should look.
const (
	Page Severity = "page" // now
	Warn Severity = "warn" // today
	Info Severity = "info"
)

// Severities are all of them, the most urgent first.
var Severities = []Severity{Page, Warn, Info}

// FindingCode names what does not agree.
type FindingCode string

// What may not agree.
const (
	RunNotApproved     FindingCode = "run_not_approved"    // an effect without an approval
	ApprovedNotRun     FindingCode = "approved_not_run"    // an approval without an effect
	DigestsDiffer      FindingCode = "digests_differ"      // something else was done than was approved
	DigestGone         FindingCode = "digest_gone"         // erased: it cannot be compared any more
	RanTwice           FindingCode = "ran_twice"           // one approval, two effects that succeeded
	IntentNotRecorded  FindingCode = "intent_not_recorded" // in the ledger and not in the record
	IntentNotInLedger  FindingCode = "intent_not_in_ledger"
	ReceiptNotRecorded FindingCode = "receipt_not_recorded"
	EffectInDoubt      FindingCode = "effect_in_doubt"       // begun, and nobody knows how it ended
	DecisionLost       FindingCode = "decision_lost"         // recorded, and the run does not know it
	DecisionNotInAudit FindingCode = "decision_not_in_audit" // the run knows it, and the record does not
	DecidedTwice       FindingCode = "decided_twice"         // two words that settle one question
	OutcomesDiffer     FindingCode = "outcomes_differ"
	RunGone            FindingCode = "run_gone"     // deleted, and no record says that it was erased
	ClickLost          FindingCode = "click_lost"   // neither a decision nor a refusal
	NotInGroup         FindingCode = "not_in_group" // at the time of the decision
	GroupUnknown       FindingCode = "group_unknown"
)

// FindingCodes are all of them, for those who count.
var FindingCodes = []FindingCode{
	RunNotApproved, ApprovedNotRun, DigestsDiffer, DigestGone, RanTwice, IntentNotRecorded, IntentNotInLedger, ReceiptNotRecorded, EffectInDoubt,
	DecisionLost, DecisionNotInAudit, DecidedTwice, OutcomesDiffer, RunGone, ClickLost, NotInGroup, GroupUnknown,
}

// Finding is one place where the books do not agree.
type Finding struct {
	Severity       Severity
	Code           FindingCode
	Run, Interrupt string
	// Seq is the record that it is about; 0 if there is none.
	Seq int64
	// Text says it to a person.
	Text string
}

// Reconcile compares the books. An error is one of reading them; what does not agree is a finding, the worst first.
func Reconcile(books Books) ([]Finding, error) {
	r := reconciler{Books: books, known: make(map[string]*known), clicks: make(map[string]bool)}
	r.Grace = cmp.Or(r.Grace, 15*time.Minute)
	steps := []func() error{
		func() error { return each(r.Audit, r.record) },
		func() error { return each(r.Effects, r.effect) },
		func() error { return each(r.Interrupts, r.interrupt) },
		func() error { return each(r.Clicks, r.click) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for id, k := range r.known {
		r.compare(id, k)
	}
	slices.SortFunc(r.findings, Worse)
	return r.findings, nil
}

// Worse orders findings, the worst first.
func Worse(a, b Finding) int {
	return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Interrupt, b.Interrupt),
		cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
}

func rank(s Severity) int { return slices.Index(Severities, s) }

func each[T any](all iter.Seq2[T, error], do func(T)) error {
	if all == nil {
		return nil
	}
	for one, err := range all {
		if err != nil {
			return err
		}
		do(one)
	}
	return nil
}

type reconciler struct {
	Books
	known    map[string]*known // by interrupt
	clicks   map[string]bool   // those that the record knows
	findings []Finding
}

// known is all that the books say about one interrupt.
type known struct {
	settled  *Record // the decision, the expiry or the use of a grant
	intents  map[int]Record
	receipts map[int]bool
	effects  []EffectLine
	run      *InterruptLine
}

func (r *reconciler) about(interrupt string) *known {
	k, ok := r.known[interrupt]
	if !ok {
		k = &known{intents: make(map[int]Record), receipts: make(map[int]bool)}
		r.known[interrupt] = k
	}
	return k
}

func (r *reconciler) record(rec Record) {
	switch body := rec.Body.(type) {
	case Decided:
		r.clicks[body.Click.Key] = true
		r.membership(rec, body)
		if body.Settles {
			r.settle(rec)
		}
	case Refused:
		r.clicks[body.Click.Key] = true
	case Expired:
		r.settle(rec)
	case GrantUsed:
		if rec.Place.Interrupt != "" { // else nobody was to be asked yet: the intent says which rule let it happen
			r.settle(rec)
		}
	case EffectBegun:
		r.about(rec.Place.Interrupt).intents[body.Number] = rec
	case EffectEnded:
		r.about(rec.Place.Interrupt).receipts[body.Number] = true
	case Asked, Delivered, Viewed, Claimed, Released, Escalated, Delegated, Snoozed, Changed, Commented, Withdrawn, PolicyLoaded, PolicyDenied,
		GrantMade, GrantRevoked, APIKeyMade, APIKeyRevoked, SessionBegun, SessionEnded, RunStarted, RunEnded, RunParked, RunRetried, Exported, Erased, Verified, KeyUsed: // nothing that another book knows too
	}
}

func (r *reconciler) settle(rec Record) {
	k := r.about(rec.Place.Interrupt)
	if k.settled == nil { // the first word counts
		k.settled = &rec
		return
	}
	r.find(Finding{Severity: Page, Code: DecidedTwice, Run: rec.Place.Run, Interrupt: rec.Place.Interrupt, Seq: rec.Seq, Text: fmt.Sprintf(
		"%s was settled by record %d (%s), and again by record %d (%s).", rec.Place.Interrupt, k.settled.Seq, outcomeOf(k.settled.Body), rec.Seq, outcomeOf(rec.Body))})
}

func (r *reconciler) effect(e EffectLine) {
	k := r.about(e.Interrupt)
	k.effects = append(k.effects, e)
}

func (r *reconciler) interrupt(line InterruptLine) { r.about(line.Interrupt).run = &line }

func (r *reconciler) click(c ClickLine) {
	if !r.clicks[c.Key] && r.old(c.At) {
		r.find(Finding{Severity: Warn, Code: ClickLost, Text: fmt.Sprintf(
			"Somebody clicked on %s at %s (delivery %s), and the record holds neither a decision nor a refusal: the click was lost.", c.Surface, At(c.At), c.Key)})
	}
}

func (r *reconciler) find(f Finding)       { r.findings = append(r.findings, f) }
func (r *reconciler) old(t time.Time) bool { return r.Now.Sub(t) > r.Grace }

// membership looks whether a decision counted for groups whose member its actor was.
func (r *reconciler) membership(rec Record, d Decided) {
	if r.Member == nil || rec.Actor.Kind != Person {
		return
	}
	f := Finding{Run: rec.Place.Run, Interrupt: rec.Place.Interrupt, Seq: rec.Seq}
	if len(d.Quorum.Need) > 0 && len(d.Groups) == 0 && d.Verb.Approves() {
		f.Severity, f.Code = Page, NotInGroup
		f.Text = fmt.Sprintf("%s approved %s, which needs the word of certain groups, for none of them.", rec.Actor.Principal, rec.Place.Interrupt)
		r.find(f)
	}
	for _, group := range d.Groups {
		switch r.Member(rec.Actor.Principal, group, rec.Time.Time) {
		case MemberYes:
			continue
		case MemberNo:
			f.Severity, f.Code = Page, NotInGroup
			f.Text = fmt.Sprintf("%s decided %s for %s at %s, and was no member then.", rec.Actor.Principal, rec.Place.Interrupt, group, rec.Time)
		case MemberUnknown:
			f.Severity, f.Code = Info, GroupUnknown
			f.Text = fmt.Sprintf("Nobody can tell any more whether %s was a member of %s at %s.", rec.Actor.Principal, group, rec.Time)
		}
		r.find(f)
	}
}

// Records parses what a log returns. Kinds of a newer version are passed over.
func Records(raw iter.Seq2[[]byte, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for bytes, err := range raw {
			var rec Record
			if err == nil {
				rec, err = Parse(bytes)
			}
			if isUnknownKind(err) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
