package audit

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ReconcileInput are the sources that have to agree: what the record says, what was done, and what the runs know. Each may be read once.
type ReconcileInput struct {
	// Audit are the records of an account, parsed; see [ParseRecords].
	Audit iter.Seq2[Record, error]
	// Effects is the ledger, Interrupts what the runs know of their questions, Clicks everything that came in by channels.
	Effects    iter.Seq2[EffectEntry, error]
	Interrupts iter.Seq2[InterruptEntry, error]
	Clicks     iter.Seq2[ChannelClick, error]

	// Payload finds a payload that was not erased. Of Data nothing is needed, only the salt.
	Payload func(id string) (Payload, bool)
	// Member says whether somebody was in a group at a time. Without it nobody's membership is looked at.
	Member func(principal, group string, at time.Time) Membership
	// Now is the time of the reconciliation. What is younger than Grace may still be under way; 0 is 15 minutes.
	Now   time.Time
	Grace time.Duration
}

// EffectEntry is a line of the effects ledger.
type EffectEntry struct {
	Run, Interrupt string
	Number         int
	// Digest is the plain one of the action with its arguments.
	Digest string
	// Key is what its target knows it by.
	Key          string
	State        EffectState
	Begun, Ended time.Time
}

// InterruptEntry is what a run knows of one of its questions.
type InterruptEntry struct {
	Run, Interrupt string
	// Outcome is what was decided; empty as long as nothing is.
	Outcome Outcome
	// Applied says that the run has taken the answer, Over that the run no longer asks or is over.
	Applied, Closed bool
	// Elsewhere says that what is approved is done by somebody who keeps no ledger here, so that none of it is missed.
	EffectExternal bool
	// OnItsWay says that the answer is sent again and again to somebody elsewhere who does not take it.
	Redelivering bool
	// Again says that the run has asked about the same once more, because what it acts on had changed: the yes to that is the one that counts.
	AskedAgain bool
}

// ChannelClick is something that came in by a channel.
type ChannelClick struct {
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
	SeverityPage Severity = "page" // now
	SeverityWarn Severity = "warn" // today
	SeverityInfo Severity = "info"
)

// Severities are all of them, the most urgent first.
var Severities = []Severity{SeverityPage, SeverityWarn, SeverityInfo}

// FindingCode names what does not agree.
type FindingCode string

// What may not agree.
const (
	FindingRunNotApproved     FindingCode = "run_not_approved"    // an effect without an approval
	FindingApprovedNotRun     FindingCode = "approved_not_run"    // an approval without an effect
	FindingDigestsDiffer      FindingCode = "digests_differ"      // something else was done than was approved
	FindingDigestGone         FindingCode = "digest_gone"         // erased: it cannot be compared any more
	FindingRanTwice           FindingCode = "ran_twice"           // one approval, two effects that succeeded
	FindingIntentNotRecorded  FindingCode = "intent_not_recorded" // in the ledger and not in the record
	FindingIntentNotInLedger  FindingCode = "intent_not_in_ledger"
	FindingReceiptNotRecorded FindingCode = "receipt_not_recorded"
	FindingEffectInDoubt      FindingCode = "effect_in_doubt"       // begun, and nobody knows how it ended
	FindingDecisionLost       FindingCode = "decision_lost"         // recorded, and the run does not know it
	FindingDecisionNotInAudit FindingCode = "decision_not_in_audit" // the run knows it, and the record does not
	FindingDecidedTwice       FindingCode = "decided_twice"         // two words that settle one question
	FindingOutcomesDiffer     FindingCode = "outcomes_differ"
	FindingRunGone            FindingCode = "run_gone"     // deleted, and no record says that it was erased
	FindingClickLost          FindingCode = "click_lost"   // neither a decision nor a refusal
	FindingNotInGroup         FindingCode = "not_in_group" // at the time of the decision
	FindingGroupUnknown       FindingCode = "group_unknown"
)

// FindingCodes are all of them, for those who count.
var FindingCodes = []FindingCode{
	FindingRunNotApproved, FindingApprovedNotRun, FindingDigestsDiffer, FindingDigestGone, FindingRanTwice, FindingIntentNotRecorded, FindingIntentNotInLedger, FindingReceiptNotRecorded, FindingEffectInDoubt,
	FindingDecisionLost, FindingDecisionNotInAudit, FindingDecidedTwice, FindingOutcomesDiffer, FindingRunGone, FindingClickLost, FindingNotInGroup, FindingGroupUnknown,
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
func Reconcile(books ReconcileInput) ([]Finding, error) {
	r := reconciler{ReconcileInput: books, evidence: make(map[string]*interruptEvidence), clicks: make(map[string]bool)}
	r.Grace = cmp.Or(r.Grace, 15*time.Minute)
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

// CompareFindings orders findings, the worst first.
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
	ReconcileInput
	evidence map[string]*interruptEvidence // by interrupt
	clicks   map[string]bool               // those that the record knows
	findings []Finding
}

// interruptEvidence is all that the books say about one interrupt.
type interruptEvidence struct {
	decision *Record // the decision, the expiry or the use of a grant
	intents  map[int]Record
	receipts map[int]bool
	effects  []EffectEntry
	run      *InterruptEntry
}

func (r *reconciler) evidenceFor(interrupt string) *interruptEvidence {
	k, ok := r.evidence[interrupt]
	if !ok {
		k = &interruptEvidence{intents: make(map[int]Record), receipts: make(map[int]bool)}
		r.evidence[interrupt] = k
	}
	return k
}

func (r *reconciler) addRecord(rec Record) {
	switch body := rec.Body.(type) {
	case RequestDecided:
		r.clicks[body.Click.Key] = true
		r.checkMembership(rec, body)
		if body.Settles {
			r.addDecision(rec)
		}
	case RequestRefused:
		r.clicks[body.Click.Key] = true
	case RequestExpired:
		r.addDecision(rec)
	case GrantUsed:
		if rec.Location.Interrupt != "" { // else nobody was to be asked yet: the intent says which rule let it happen
			r.addDecision(rec)
		}
	case EffectBegun:
		r.evidenceFor(rec.Location.Interrupt).intents[body.Number] = rec
	case EffectEnded:
		r.evidenceFor(rec.Location.Interrupt).receipts[body.Number] = true
	case RequestAsked, RequestDelivered, RequestViewed, RequestClaimed, RequestReleased, RequestEscalated, RequestDelegated, RequestSnoozed, RequestChanged, RequestCommented, RequestWithdrawn, PolicyLoaded, PolicyDenied,
		GrantMade, GrantRevoked, APIKeyMade, APIKeyRevoked, SessionBegun, SessionEnded, RunStarted, RunEnded, RunParked, RunRetried, LogExported, PayloadsErased, LogVerified, LogSigned: // nothing that another book knows too
	}
}

func (r *reconciler) addDecision(rec Record) {
	k := r.evidenceFor(rec.Location.Interrupt)
	if k.decision == nil { // the first word counts
		k.decision = &rec
		return
	}
	r.addFinding(Finding{Severity: SeverityPage, Code: FindingDecidedTwice, Run: rec.Location.Run, Interrupt: rec.Location.Interrupt, Seq: rec.Seq, Text: fmt.Sprintf(
		"%s was settled by record %d (%s), and again by record %d (%s).", rec.Location.Interrupt, k.decision.Seq, outcomeOf(k.decision.Body), rec.Seq, outcomeOf(rec.Body))})
}

func (r *reconciler) addEffect(e EffectEntry) {
	k := r.evidenceFor(e.Interrupt)
	k.effects = append(k.effects, e)
}

func (r *reconciler) addInterrupt(line InterruptEntry) { r.evidenceFor(line.Interrupt).run = &line }

func (r *reconciler) checkClick(c ChannelClick) {
	if !r.clicks[c.Key] && r.pastGrace(c.At) {
		r.addFinding(Finding{Severity: SeverityWarn, Code: FindingClickLost, Text: fmt.Sprintf(
			"Somebody clicked on %s at %s (delivery %s), and the record holds neither a decision nor a refusal: the click was lost.", c.Surface, TimestampOf(c.At), c.Key)})
	}
}

func (r *reconciler) addFinding(f Finding)       { r.findings = append(r.findings, f) }
func (r *reconciler) pastGrace(t time.Time) bool { return r.Now.Sub(t) > r.Grace }

// membership looks whether a decision counted for groups whose member its actor was.
func (r *reconciler) checkMembership(rec Record, d RequestDecided) {
	if r.Member == nil || rec.Actor.Kind != ActorPerson {
		return
	}
	f := Finding{Run: rec.Location.Run, Interrupt: rec.Location.Interrupt, Seq: rec.Seq}
	if len(d.Quorum.Need) > 0 && len(d.Groups) == 0 && d.Verb.Approves() {
		f.Severity, f.Code = SeverityPage, FindingNotInGroup
		f.Text = fmt.Sprintf("%s approved %s, which needs the word of certain groups, for none of them.", rec.Actor.Principal, rec.Location.Interrupt)
		r.addFinding(f)
	}
	for _, group := range d.Groups {
		switch r.Member(rec.Actor.Principal, group, rec.Time.Time) {
		case MemberYes:
			continue
		case MemberNo:
			f.Severity, f.Code = SeverityPage, FindingNotInGroup
			f.Text = fmt.Sprintf("%s decided %s for %s at %s, and was no member then.", rec.Actor.Principal, rec.Location.Interrupt, group, rec.Time)
		case MemberUnknown:
			f.Severity, f.Code = SeverityInfo, FindingGroupUnknown
			f.Text = fmt.Sprintf("Nobody can tell any more whether %s was a member of %s at %s.", rec.Actor.Principal, group, rec.Time)
		}
		r.addFinding(f)
	}
}

// ParseRecords parses what a log returns. Kinds of a newer version are passed over.
func ParseRecords(raw iter.Seq2[[]byte, error]) iter.Seq2[Record, error] {
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
