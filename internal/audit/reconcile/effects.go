package reconcile

import (
	"fmt"

	"github.com/fermata-go/fermata/internal/audit"
)

// checkInterrupt compares the sources for one interrupt.
func (r *reconciler) checkInterrupt(id string, k *interruptEvidence) {
	f := Finding{Interrupt: id}
	switch {
	case k.run != nil:
		f.Run = k.run.Run
	case len(k.effects) > 0:
		f.Run = k.effects[0].Run
	case k.decision != nil:
		f.Run = k.decision.Location.Run
	}
	if k.decision != nil {
		f.Seq = k.decision.Seq
	}
	for _, e := range k.effects {
		r.checkEffect(f, k, e)
	}
	if times := k.countExecutions(); times > 1 {
		r.addFindingf(f, SeverityPage, FindingRanTwice, "%s was approved once and executed %d times.", id, times)
	}
	for number, intent := range k.intents {
		if !k.hasEffect(number) {
			f := f
			f.Seq = intent.Seq
			r.addFindingf(f, SeverityPage, FindingIntentNotInLedger, "The audit log says that effect %d of %s was begun at %s, but the ledger has no entry for it.", number, id, intent.Time)
		}
	}
	r.checkOutcome(f, k)
	r.checkReceipt(f, k)
}

// checkReceipt compares the receipt of an external agent with the decision.
func (r *reconciler) checkReceipt(f Finding, k *interruptEvidence) {
	if k.run == nil || !k.run.EffectExternal {
		return
	}
	approved, ok := k.approvedArgs()
	ok = ok && approved != (audit.Digest{})
	receipt := k.run.Receipt
	switch {
	case receipt == nil:
		if ok && k.run.ReceiptExpected && r.Now.Sub(k.decision.Time.Time) > r.ReceiptAfter {
			r.addFindingf(f, SeverityWarn, FindingApprovedNotRun, "%s was approved at %s, but its agent has sent no receipt.", f.Interrupt, k.decision.Time)
		}
	case receipt.Outcome == audit.ReceiptNotDone:
	case k.decision == nil:
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "The agent executed %s according to its receipt of %s, but the audit log has no approval.", f.Interrupt, audit.TimestampOf(receipt.At))
	case !ok:
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "The agent executed %s according to its receipt of %s, but the decision is not an approval (%s).", f.Interrupt, audit.TimestampOf(receipt.At), outcomeOf(k.decision.Body))
	case k.decision.Time.After(receipt.At):
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "The agent executed %s according to its receipt of %s, before it was approved at %s.", f.Interrupt, audit.TimestampOf(receipt.At), k.decision.Time)
	default:
		r.checkDigest(f, approved, "The action of "+f.Interrupt, receipt.Digest)
	}
}

func (r *reconciler) addFindingf(f Finding, severity Severity, code FindingCode, format string, args ...any) {
	f.Severity, f.Code, f.Text = severity, code, fmt.Sprintf(format, args...)
	r.addFinding(f)
}

func (k *interruptEvidence) hasEffect(number int) bool {
	for _, e := range k.effects {
		if e.Number == number {
			return true
		}
	}
	return false
}

// isLastAttempt reports whether there is no later attempt. A later attempt begins only if the
// target permits a repetition, or after a person has said that the effect did not happen; so its
// outcome is that of the effect.
func (k *interruptEvidence) isLastAttempt(number int) bool {
	for _, e := range k.effects {
		if e.Number > number {
			return false
		}
	}
	return true
}

// countExecutions counts the executions. Calls with the same key to a target that ignores
// duplicates count once; the intent records that property.
func (k *interruptEvidence) countExecutions() int {
	times, keys := 0, make(map[string]bool)
	for _, e := range k.effects {
		if e.State != audit.EffectStateSucceeded {
			continue
		}
		intent, _ := k.intents[e.Number].Body.(audit.EffectBegun)
		if intent.Repeatable && e.Key != "" { //mutate:repeatable-target-checked
			keys[e.Key] = true
		} else {
			times++
		}
	}
	return times + len(keys)
}

// allowedByRule returns what a rule allowed without a request, as recorded by the intent.
func (k *interruptEvidence) allowedByRule(number int) (what audit.Digest, ok bool) {
	intent, recorded := k.intents[number]
	if !recorded || k.decision != nil || k.run != nil {
		return audit.Digest{}, false
	}
	body := intent.Body.(audit.EffectBegun)
	return body.Action.Args, len(body.Ruling.Rules) > 0
}

// approvedArgs returns the approved arguments; ok is false if there is no approval.
func (k *interruptEvidence) approvedArgs() (what audit.Digest, ok bool) {
	if k.decision == nil {
		return audit.Digest{}, false
	}
	if use, granted := k.decision.Body.(audit.GrantUsed); granted {
		return use.Action.Args, true
	}
	if d, decided := k.decision.Body.(audit.RequestDecided); decided && d.Verb.Approves() {
		return d.ApprovedArgs(), true
	}
	return audit.Digest{}, false
}

// checkEffect checks that an effect was approved, with these arguments, and recorded.
func (r *reconciler) checkEffect(f Finding, k *interruptEvidence, e EffectEntry) {
	what := fmt.Sprintf("Effect %d of %s", e.Number, e.Interrupt)
	approved, ok := k.approvedArgs()
	byRule, isAllowed := k.allowedByRule(e.Number)
	switch {
	case isAllowed:
		r.checkDigest(f, byRule, what, e.Digest)
	case k.decision == nil:
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "%s was begun at %s, but the audit log has no approval.", what, audit.TimestampOf(e.Begun))
	case !ok:
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "%s was begun at %s, but the decision is not an approval (%s).", what, audit.TimestampOf(e.Begun), outcomeOf(k.decision.Body))
	case k.decision.Time.After(e.Begun):
		r.addFindingf(f, SeverityPage, FindingRunNotApproved, "%s was begun at %s, before it was approved at %s.", what, audit.TimestampOf(e.Begun), k.decision.Time)
	default:
		r.checkDigest(f, approved, what, e.Digest)
	}
	intent, recorded := k.intents[e.Number]
	switch {
	case !recorded:
		r.addFindingf(f, SeverityPage, FindingIntentNotRecorded, "%s is in the ledger, but its intent is not in the audit log.", what)
	case ok && intent.Body.(audit.EffectBegun).Action.Args != approved:
		f.Seq = intent.Seq
		r.addFindingf(f, SeverityPage, FindingDigestsDiffer, "%s was begun with other arguments than were approved, according to the audit log.", what)
	}
	switch {
	case e.State == audit.EffectStateBegun && r.pastGrace(e.Begun) && k.isLastAttempt(e.Number): //mutate:settled-doubt-cleared
		r.addFindingf(f, SeverityWarn, FindingEffectInDoubt, "%s was begun at %s, and its outcome is unknown.", what, audit.TimestampOf(e.Begun))
	case e.State != audit.EffectStateBegun && !k.receipts[e.Number]:
		r.addFindingf(f, SeverityWarn, FindingReceiptNotRecorded, "%s has ended (%s), but its receipt is not in the audit log.", what, e.State)
	}
}

// checkDigest checks that what was executed has the approved digest.
func (r *reconciler) checkDigest(f Finding, approved audit.Digest, what, digest string) {
	var payload audit.Payload
	found := false
	if r.Payload != nil {
		payload, found = r.Payload(approved.Payload)
	}
	switch {
	case !found || payload.Salt == (audit.Salt{}):
		r.addFindingf(f, SeverityInfo, FindingDigestGone, "%s can no longer be compared with the approval: the payload was erased.", what)
	case !approved.Confirms(payload, []byte(digest)):
		r.addFindingf(f, SeverityPage, FindingDigestsDiffer, "%s was executed with other arguments than were approved.", what)
	}
}

// checkOutcome checks that the run knows the recorded decision and has acted on it.
func (r *reconciler) checkOutcome(f Finding, k *interruptEvidence) {
	recorded := Outcome("")
	if k.decision != nil {
		recorded = outcomeOf(k.decision.Body)
	}
	switch {
	case recorded == "":
		if k.run != nil && k.run.Outcome != "" {
			r.addFindingf(f, SeverityPage, FindingDecisionNotInAudit, "The run knows a decision on %s (%s), but the audit log does not.", f.Interrupt, k.run.Outcome)
		}
		return
	case k.run != nil && k.run.Outcome != "" && k.run.Outcome != recorded:
		r.addFindingf(f, SeverityPage, FindingOutcomesDiffer, "The audit log says %s for %s, but the run says %s.", recorded, f.Interrupt, k.run.Outcome)
	}
	if !r.pastGrace(k.decision.Time.Time) || len(k.effects) > 0 || k.run != nil && k.run.Closed && k.run.Outcome == "" {
		return
	}
	approved, ok := k.approvedArgs()
	action := ok && approved != (audit.Digest{}) && !(k.run != nil && (k.run.EffectExternal || k.run.AskedAgain))
	taken := k.run != nil && k.run.Applied
	over := k.run != nil && k.run.Closed
	switch {
	case action && taken && over:
		r.addFindingf(f, SeverityWarn, FindingApprovedNotRun, "%s was approved at %s and the run applied the answer, but ended without executing it.", f.Interrupt, k.decision.Time)
	case action && over:
		r.addFindingf(f, SeverityInfo, FindingApprovedNotRun, "%s was approved at %s, but the run ended before it executed anything.", f.Interrupt, k.decision.Time)
	case action:
		r.addFindingf(f, SeverityPage, FindingApprovedNotRun, "%s was approved at %s, but nothing was executed since.", f.Interrupt, k.decision.Time)
	case !taken && !over && k.run != nil && k.run.Redelivering:
		r.addFindingf(f, SeverityWarn, FindingDecisionLost, "%s was decided at %s (%s), but its receiver has not accepted it; it is being sent again.", f.Interrupt, k.decision.Time, recorded)
	case !taken && !over:
		r.addFindingf(f, SeverityPage, FindingDecisionLost, "%s was decided at %s (%s), but the run has not applied it.", f.Interrupt, k.decision.Time, recorded)
	}
}

// outcomeOf returns the outcome of a record, or "" if it does not decide.
func outcomeOf(body audit.Body) Outcome {
	switch body := body.(type) {
	case audit.RequestExpired:
		return OutcomeExpire
	case audit.GrantUsed:
		return OutcomeApprove
	case audit.RequestDecided:
		switch {
		case body.Verb.Approves():
			return OutcomeApprove
		case body.Verb == audit.VerbReject, body.Verb == audit.VerbReturn: // the store has one verdict for both
			return OutcomeReject
		}
		return OutcomeAnswer
	default:
		return ""
	}
}
