package audit

import (
	"errors"
	"fmt"
)

func isUnknownKind(err error) bool { return errors.Is(err, ErrUnknownKind) }

// compare holds the books against each other for one interrupt.
func (r *reconciler) compare(id string, k *known) {
	f := Finding{Interrupt: id}
	switch {
	case k.run != nil:
		f.Run = k.run.Run
	case len(k.effects) > 0:
		f.Run = k.effects[0].Run
	case k.settled != nil:
		f.Run = k.settled.Place.Run
	}
	if k.settled != nil {
		f.Seq = k.settled.Seq
	}
	for _, e := range k.effects {
		r.compareEffect(f, k, e)
	}
	if times := k.done(); times > 1 {
		r.say(f, Page, RanTwice, "%s was approved once, and done %d times.", id, times)
	}
	for number, intent := range k.intents {
		if !k.begun(number) {
			f := f
			f.Seq = intent.Seq
			r.say(f, Page, IntentNotInLedger, "The record says that effect %d of %s was begun at %s, and the ledger has no line for it.", number, id, intent.Time)
		}
	}
	r.compareOutcome(f, k)
}

func (r *reconciler) say(f Finding, severity Severity, code FindingCode, format string, args ...any) {
	f.Severity, f.Code, f.Text = severity, code, fmt.Sprintf(format, args...)
	r.find(f)
}

func (k *known) begun(number int) bool {
	for _, e := range k.effects {
		if e.Number == number {
			return true
		}
	}
	return false
}

// done counts how often it was done. Calls with one key of a target that ignores the second one are one effect, however many of them went well; that it
// does, the intent of each of them says.
func (k *known) done() int {
	times, keys := 0, make(map[string]bool)
	for _, e := range k.effects {
		if e.State != Succeeded {
			continue
		}
		intent, _ := k.intents[e.Number].Body.(EffectBegun)
		if intent.Repeatable && e.Key != "" { //mutate:repeatable-target-checked
			keys[e.Key] = true
		} else {
			times++
		}
	}
	return times + len(keys)
}

// allowed returns what a rule allowed, if nobody was asked: the intent says it.
func (k *known) allowed(number int) (what Digest, ok bool) {
	intent, recorded := k.intents[number]
	if !recorded || k.settled != nil || k.run != nil {
		return Digest{}, false
	}
	body := intent.Body.(EffectBegun)
	return body.Action.Args, len(body.Ruling.Rules) > 0
}

// approval returns what was approved; ok is false if nothing was.
func (k *known) approval() (what Digest, ok bool) {
	if k.settled == nil {
		return Digest{}, false
	}
	if use, granted := k.settled.Body.(GrantUsed); granted {
		return use.Action.Args, true
	}
	if d, decided := k.settled.Body.(Decided); decided && d.Verb.Approves() {
		if d.Edited != (Digest{}) {
			return d.Edited, true
		}
		return d.Action.Args, true
	}
	return Digest{}, false
}

// compareEffect asks whether something was done that was approved, as it was approved, and on record.
func (r *reconciler) compareEffect(f Finding, k *known, e EffectLine) {
	what := fmt.Sprintf("Effect %d of %s", e.Number, e.Interrupt)
	approved, ok := k.approval()
	byRule, isAllowed := k.allowed(e.Number)
	switch {
	case isAllowed:
		r.compareDigest(f, byRule, e)
	case k.settled == nil:
		r.say(f, Page, RunNotApproved, "%s was begun at %s, and the record holds no approval.", what, At(e.Begun))
	case !ok:
		r.say(f, Page, RunNotApproved, "%s was begun at %s, and what the record holds is no approval (%s).", what, At(e.Begun), outcomeOf(k.settled.Body))
	case k.settled.Time.After(e.Begun):
		r.say(f, Page, RunNotApproved, "%s was begun at %s, before it was approved at %s.", what, At(e.Begun), k.settled.Time)
	default:
		r.compareDigest(f, approved, e)
	}
	intent, recorded := k.intents[e.Number]
	switch {
	case !recorded:
		r.say(f, Page, IntentNotRecorded, "%s is in the ledger, and the record does not say that it was begun.", what)
	case ok && intent.Body.(EffectBegun).Action.Args != approved:
		f.Seq = intent.Seq
		r.say(f, Page, DigestsDiffer, "%s was begun with other arguments than were approved: the record itself says so.", what)
	}
	switch {
	case e.State == Begun && r.old(e.Begun):
		r.say(f, Warn, EffectInDoubt, "%s was begun at %s, and nobody knows how it ended.", what, At(e.Begun))
	case e.State != Begun && !k.receipts[e.Number]:
		r.say(f, Warn, ReceiptNotRecorded, "%s has ended (%s), and the record does not say so.", what, e.State)
	}
}

func (r *reconciler) compareDigest(f Finding, approved Digest, e EffectLine) {
	var payload Payload
	found := false
	if r.Payload != nil {
		payload, found = r.Payload(approved.Payload)
	}
	switch {
	case !found || payload.Salt == (Salt{}):
		r.say(f, Info, DigestGone, "Whether effect %d of %s was done as approved cannot be told any more: the payload was erased.", e.Number, e.Interrupt)
	case !approved.Confirms(payload, []byte(e.Digest)):
		r.say(f, Page, DigestsDiffer, "Effect %d of %s was done with other arguments than were approved.", e.Number, e.Interrupt)
	}
}

// compareOutcome asks whether what was decided is what the run knows, and whether it came to anything.
func (r *reconciler) compareOutcome(f Finding, k *known) {
	recorded := Outcome("")
	if k.settled != nil {
		recorded = outcomeOf(k.settled.Body)
	}
	switch {
	case recorded == "":
		if k.run != nil && k.run.Outcome != "" {
			r.say(f, Page, DecisionNotInAudit, "The run knows that %s was decided (%s), and the record does not.", f.Interrupt, k.run.Outcome)
		}
		return
	case k.run != nil && k.run.Outcome != "" && k.run.Outcome != recorded:
		r.say(f, Page, OutcomesDiffer, "The record says %s of %s, and the run %s.", recorded, f.Interrupt, k.run.Outcome)
	}
	if !r.old(k.settled.Time.Time) || len(k.effects) > 0 || k.run != nil && k.run.Over && k.run.Outcome == "" {
		return
	}
	approved, ok := k.approval()
	action := ok && approved != (Digest{}) && !(k.run != nil && (k.run.Elsewhere || k.run.Again))
	taken := k.run != nil && k.run.Applied
	over := k.run != nil && k.run.Over
	switch {
	case action && taken && over:
		r.say(f, Warn, ApprovedNotRun, "%s was approved at %s and the run took the answer, but is over without having done it.", f.Interrupt, k.settled.Time)
	case action && over:
		r.say(f, Info, ApprovedNotRun, "%s was approved at %s, and the run was over before it did anything.", f.Interrupt, k.settled.Time)
	case action:
		r.say(f, Page, ApprovedNotRun, "%s was approved at %s, and nothing was done since.", f.Interrupt, k.settled.Time)
	case !taken && !over && k.run != nil && k.run.OnItsWay:
		r.say(f, Warn, DecisionLost, "%s was decided at %s (%s), and its receiver has not taken it; it is sent again.", f.Interrupt, k.settled.Time, recorded)
	case !taken && !over:
		r.say(f, Page, DecisionLost, "%s was decided at %s (%s), and the run has not taken it.", f.Interrupt, k.settled.Time, recorded)
	}
}

// outcomeOf returns how a record settles its question; empty if it does not.
func outcomeOf(body Body) Outcome {
	switch body := body.(type) {
	case Expired:
		return OutcomeExpire
	case GrantUsed:
		return OutcomeApprove
	case Decided:
		switch {
		case body.Verb.Approves():
			return OutcomeApprove
		case body.Verb == Reject:
			return OutcomeReject
		}
		return OutcomeAnswer
	default:
		return ""
	}
}
