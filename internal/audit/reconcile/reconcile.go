// Package reconcile compares the audit log with the effects and with the state of the runs, and
// reports contradictions.
package reconcile

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
)

// Input has the sources that must agree: the audit records, the effects, and the state of
// the runs. Each is read once.
type Input struct {
	// Audit are the parsed records of an account; see [audit.ParseRecords].
	Audit iter.Seq2[audit.Record, error]
	// Effects is the effect ledger, Interrupts the state of the interrupts in the runs, Clicks
	// everything that channels received.
	Effects    iter.Seq2[EffectEntry, error]
	Interrupts iter.Seq2[InterruptEntry, error]
	Clicks     iter.Seq2[ChannelClick, error]

	// Payload returns a payload that was not erased. Only the salt is needed, not the data.
	Payload func(id string) (audit.Payload, bool)
	// Member reports whether a person was in a group at a time. If it is nil, memberships are not
	// checked.
	Member func(principal, group string, at time.Time) Membership
	// Now is the time of the reconciliation. Changes younger than Grace may be in progress and are
	// not reported. The default is 15 minutes.
	Now   time.Time
	Grace time.Duration
	// ReceiptAfter is how long after an approval the receipt of an external agent may take. The
	// default is 24 hours.
	ReceiptAfter time.Duration
}

// EffectEntry is an entry of the effect ledger.
type EffectEntry struct {
	Run, Interrupt string
	Number         int
	// Digest is the plain digest of the action with its arguments.
	Digest string
	// Key is the idempotency key.
	Key          string
	State        audit.EffectState
	Begun, Ended time.Time
}

// InterruptEntry is the state of an interrupt in its run.
type InterruptEntry struct {
	Run, Interrupt string
	// Outcome is the decision, or empty if there is none.
	Outcome Outcome
	// Applied reports that the run has applied the answer. Closed reports that the run no longer
	// asks or has ended.
	Applied, Closed bool
	// EffectExternal reports that the effect is executed by a system without a ledger here. Then a
	// missing effect is not reported.
	EffectExternal bool
	// Redelivering reports that the answer is being sent again to an external system that does not
	// accept it.
	Redelivering bool
	// AskedAgain reports that the run has asked again because the target changed. The later
	// approval counts.
	AskedAgain bool
	// Receipt is what an external agent says it did; nil if it sent none. ReceiptExpected reports
	// that it should send one after an approval.
	Receipt         *ReceiptEntry
	ReceiptExpected bool
}

// ReceiptEntry is the receipt of an external agent.
type ReceiptEntry struct {
	Outcome audit.ReceiptOutcome
	// Digest is the plain digest of the action with its arguments.
	Digest string
	At     time.Time
}

// ChannelClick is a message that a channel received.
type ChannelClick struct {
	Key, Surface string
	At           time.Time
}

// Outcome is the outcome of an interrupt, as the runtime names it.
type Outcome string

// The outcomes.
const (
	OutcomeApprove Outcome = "approve"
	OutcomeReject  Outcome = "reject"
	OutcomeAnswer  Outcome = "answer"
	OutcomeExpire  Outcome = "expire"
)

// Membership reports whether a person was in a group.
type Membership int

// The memberships. The zero value means unknown.
const (
	MemberUnknown Membership = iota
	MemberYes
	MemberNo
)

// Severity is the urgency of a finding.
type Severity string

// The severities.
const (
	SeverityPage Severity = "page" // act now
	SeverityWarn Severity = "warn" // act today
	SeverityInfo Severity = "info"
)

// Severities are all severities, most urgent first.
var Severities = []Severity{SeverityPage, SeverityWarn, SeverityInfo}

// FindingCode is the code of a finding.
type FindingCode string

// The finding codes.
const (
	FindingRunNotApproved FindingCode = "run_not_approved" // an effect without an approval
	FindingApprovedNotRun FindingCode = "approved_not_run" // an approval without an effect
	// executed something other than approved
	FindingDigestsDiffer FindingCode = "digests_differ"
	// erased: cannot be compared any more
	FindingDigestGone FindingCode = "digest_gone"
	// one approval, two successful effects
	FindingRanTwice FindingCode = "ran_twice"
	// in the ledger but not in the audit log
	FindingIntentNotRecorded  FindingCode = "intent_not_recorded"
	FindingIntentNotInLedger  FindingCode = "intent_not_in_ledger"
	FindingReceiptNotRecorded FindingCode = "receipt_not_recorded"
	FindingEffectInDoubt      FindingCode = "effect_in_doubt" // begun, outcome unknown
	// recorded, but not known to the run
	FindingDecisionLost FindingCode = "decision_lost"
	// known to the run, but not recorded
	FindingDecisionNotInAudit FindingCode = "decision_not_in_audit"
	// two decisions on one interrupt
	FindingDecidedTwice   FindingCode = "decided_twice"
	FindingOutcomesDiffer FindingCode = "outcomes_differ"
	FindingRunGone        FindingCode = "run_gone"     // deleted without an erasure record
	FindingClickLost      FindingCode = "click_lost"   // neither a decision nor a refusal
	FindingNotInGroup     FindingCode = "not_in_group" // at the time of the decision
	FindingGroupUnknown   FindingCode = "group_unknown"
)

// FindingCodes are all finding codes, for metrics.
var FindingCodes = []FindingCode{
	FindingRunNotApproved, FindingApprovedNotRun, FindingDigestsDiffer, FindingDigestGone, FindingRanTwice, FindingIntentNotRecorded, FindingIntentNotInLedger, FindingReceiptNotRecorded, FindingEffectInDoubt,
	FindingDecisionLost, FindingDecisionNotInAudit, FindingDecidedTwice, FindingOutcomesDiffer, FindingRunGone, FindingClickLost, FindingNotInGroup, FindingGroupUnknown,
}

// Finding is one contradiction between the sources.
type Finding struct {
	Severity       Severity
	Code           FindingCode
	Run, Interrupt string
	// Seq is the number of the audit record, or 0.
	Seq int64
	// Text describes the finding for people.
	Text string
}

// Run compares the sources. Contradictions are findings, most severe first. An error means
// that a source could not be read.
func Run(books Input) ([]Finding, error) {
	r := reconciler{Input: books, evidence: make(map[string]*interruptEvidence), clicks: make(map[string]bool)}
	r.Grace, r.ReceiptAfter = cmp.Or(r.Grace, 15*time.Minute), cmp.Or(r.ReceiptAfter, 24*time.Hour)
	steps := []func() error{
		func() error { return forEach(r.Audit, r.addRecord) },
		func() error { return forEach(r.Effects, r.addEffect) },
		func() error { return forEach(r.Interrupts, r.addInterrupt) },
		func() error { return forEach(r.Clicks, r.checkClick) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for id, k := range r.evidence {
		r.checkInterrupt(id, k)
	}
	slices.SortFunc(r.findings, CompareFindings)
	return r.findings, nil
}

// CompareFindings sorts findings, most severe first.
func CompareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Interrupt, b.Interrupt),
		cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
}

func severityRank(s Severity) int { return slices.Index(Severities, s) }

func forEach[T any](all iter.Seq2[T, error], do func(T)) error {
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
	Input
	evidence map[string]*interruptEvidence // by interrupt
	clicks   map[string]bool               // click keys in the audit log
	findings []Finding
}

// interruptEvidence is everything that the sources say about one interrupt.
type interruptEvidence struct {
	decision *audit.Record // the decision, the expiry or the use of a grant
	intents  map[int]audit.Record
	receipts map[int]bool
	effects  []EffectEntry
	run      *InterruptEntry
}

func (r *reconciler) evidenceFor(interrupt string) *interruptEvidence {
	k, ok := r.evidence[interrupt]
	if !ok {
		k = &interruptEvidence{intents: make(map[int]audit.Record), receipts: make(map[int]bool)}
		r.evidence[interrupt] = k
	}
	return k
}

func (r *reconciler) addRecord(rec audit.Record) {
	switch body := rec.Body.(type) {
	case audit.RequestDecided:
		r.clicks[body.Click.Key] = true
		r.checkMembership(rec, body)
		if body.Settles {
			r.addDecision(rec)
		}
	case audit.RequestRefused:
		r.clicks[body.Click.Key] = true
	case audit.RequestExpired:
		r.addDecision(rec)
	case audit.GrantUsed:
		// otherwise there was no request: the intent names the rule
		if rec.Location.Interrupt != "" {
			r.addDecision(rec)
		}
	case audit.EffectBegun:
		r.evidenceFor(rec.Location.Interrupt).intents[body.Number] = rec
	case audit.EffectEnded:
		r.evidenceFor(rec.Location.Interrupt).receipts[body.Number] = true
	case audit.RequestAsked, audit.RequestDelivered, audit.RequestViewed, audit.RequestRendered, audit.RequestRevealed, audit.RequestClaimed, audit.RequestReleased, audit.RequestEscalated, audit.RequestDelegated, audit.RequestSnoozed, audit.RequestChanged, audit.RequestCommented, audit.RequestWithdrawn, audit.PolicyLoaded, audit.PolicyDenied, audit.PolicyAllowed,
		// not in any other source, or compared as InterruptEntry.Receipt
		audit.AgentReceipt, audit.GrantMade, audit.GrantRevoked, audit.NotificationsChanged, audit.WebhookChanged, audit.APIKeyMade, audit.APIKeyRevoked, audit.SessionBegun, audit.SessionEnded, audit.ChannelLinked, audit.ChannelUnlinked, audit.RunStarted, audit.RunEnded, audit.RunParked, audit.RunRetried, audit.LogExported, audit.PayloadsErased, audit.LogVerified, audit.LogSigned:
	}
}

func (r *reconciler) addDecision(rec audit.Record) {
	k := r.evidenceFor(rec.Location.Interrupt)
	if k.decision == nil { // the first decision counts
		k.decision = &rec
		return
	}
	r.addFinding(Finding{Severity: SeverityPage, Code: FindingDecidedTwice, Run: rec.Location.Run, Interrupt: rec.Location.Interrupt, Seq: rec.Seq, Text: fmt.Sprintf(
		"%s was decided by record %d (%s), and again by record %d (%s).", rec.Location.Interrupt, k.decision.Seq, outcomeOf(k.decision.Body), rec.Seq, outcomeOf(rec.Body))})
}

func (r *reconciler) addEffect(e EffectEntry) {
	k := r.evidenceFor(e.Interrupt)
	k.effects = append(k.effects, e)
}

func (r *reconciler) addInterrupt(line InterruptEntry) { r.evidenceFor(line.Interrupt).run = &line }

func (r *reconciler) checkClick(c ChannelClick) {
	if !r.clicks[c.Key] && r.pastGrace(c.At) {
		r.addFinding(Finding{Severity: SeverityWarn, Code: FindingClickLost, Text: fmt.Sprintf(
			"A click on %s at %s (delivery %s) was lost: the audit log has no decision and no refusal for it.", c.Surface, audit.TimestampOf(c.At), c.Key)})
	}
}

func (r *reconciler) addFinding(f Finding)       { r.findings = append(r.findings, f) }
func (r *reconciler) pastGrace(t time.Time) bool { return r.Now.Sub(t) > r.Grace }

// checkMembership checks that a decision counted only for groups of its actor.
func (r *reconciler) checkMembership(rec audit.Record, d audit.RequestDecided) {
	if r.Member == nil || rec.Actor.Kind != audit.ActorPerson {
		return
	}
	f := Finding{Run: rec.Location.Run, Interrupt: rec.Location.Interrupt, Seq: rec.Seq}
	if len(d.Quorum.Need) > 0 && len(d.Groups) == 0 && d.Verb.Approves() {
		f.Severity, f.Code = SeverityPage, FindingNotInGroup
		f.Text = fmt.Sprintf("%s approved %s, which requires certain groups, for none of them.", rec.Actor.Principal, rec.Location.Interrupt)
		r.addFinding(f)
	}
	for _, group := range d.Groups {
		switch r.Member(rec.Actor.Principal, group, rec.Time.Time) {
		case MemberYes:
			continue
		case MemberNo:
			f.Severity, f.Code = SeverityPage, FindingNotInGroup
			f.Text = fmt.Sprintf("%s decided %s for %s at %s, but was not a member at that time.", rec.Actor.Principal, rec.Location.Interrupt, group, rec.Time)
		case MemberUnknown:
			f.Severity, f.Code = SeverityInfo, FindingGroupUnknown
			f.Text = fmt.Sprintf("It is no longer known whether %s was a member of %s at %s.", rec.Actor.Principal, group, rec.Time)
		}
		r.addFinding(f)
	}
}
