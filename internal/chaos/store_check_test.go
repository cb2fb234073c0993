//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// storeCheck checks the final state of the store.
type storeCheck struct {
	evidence
	runs []store.History

	interrupts  map[string]*store.Interrupt
	decisionsOf map[decisionID]*attempt // one of the attempts
	receipts    map[string]effectCall
	keys        map[string]effectCall
}

func newStoreCheck(e evidence, runs []store.History) *storeCheck {
	b := &storeCheck{
		evidence: e, runs: runs, interrupts: make(map[string]*store.Interrupt), decisionsOf: make(map[decisionID]*attempt),
		receipts: make(map[string]effectCall), keys: make(map[string]effectCall),
	}
	for n := range runs {
		list := runs[n].Interrupts
		for i := range list {
			b.interrupts[list[i].ID] = &list[i]
		}
	}
	for _, a := range e.attempts {
		if a.verb == doDecide && a.Account == account && len(a.aims) == len(a.Targets) {
			b.decisionsOf[a.id()] = a
		}
	}
	for _, d := range e.deeds {
		b.receipts[d.receipt], b.keys[d.Key] = d, d
	}
	return b
}

// check compares the store with everything else.
func (b *storeCheck) check() []violation {
	found := slices.Concat(b.outside(), b.acknowledgedIsStored(), b.startedRunsEnd(), b.shownIsStored(), b.effectsAreInLedger(), b.linearizable())
	for _, h := range b.runs {
		for _, check := range []func(store.History) []violation{b.settled, b.decisions, b.applied, b.output, b.history} {
			found = append(found, check(h)...)
		}
	}
	return found
}

// acknowledgedIsStored checks that every accepted decision, and every reason for a refusal, is in
// the store.
func (b *storeCheck) acknowledgedIsStored() (found []violation) {
	for _, a := range b.attempts {
		switch {
		case a.verb != doDecide || a.got == 0:
		case a.answer.accepted():
			for id := range a.Targets {
				i := b.interrupts[id]
				if i == nil || i.State != store.InterruptDecided || (decisionID{i.DecidedBy, i.ResumeID}) != a.id() {
					found = append(found, violation{oneVerdict, a.Key, fmt.Sprintf("%s\n        but the store has %s", a, describe(i))})
				}
			}
		case a.answer.Kind == saidRefused:
			i := b.interrupts[a.answer.Interrupt]
			named := a.answer.By == "" || i != nil && i.DecidedBy == a.answer.By && i.Verdict == a.answer.Verdict
			if !refusedFor(a.answer.Result, i) || !named {
				found = append(found, violation{oneVerdict, a.Key, fmt.Sprintf("%s\n        but the store has %s", a, describe(i))})
			}
		}
	}
	return found
}

// startedRunsEnd checks that an acknowledged start created one run, however often it was sent, and
// that an acknowledged cancel ended it.
func (b *storeCheck) startedRunsEnd() (found []violation) {
	byKey := make(map[string]store.Status)
	for _, h := range b.runs {
		if _, twice := byKey[h.Run.StateKey]; twice {
			found = append(found, violation{oneAnswer, h.Run.StateKey, "the same start created two runs"})
		}
		byKey[h.Run.StateKey] = h.Run.Status
	}
	for _, a := range b.attempts {
		status, known := byKey[a.Key]
		switch {
		case a.Account != account || a.got == 0:
		case a.verb == doStart && !known, a.verb == doCancel && a.answer.Kind == saidDone && status != store.StatusCancelled:
			found = append(found, violation{durable, a.Key, fmt.Sprintf("%s\n        but the run is %q", a, status)})
		}
	}
	return found
}

func describe(i *store.Interrupt) string {
	if i == nil {
		return "no such interrupt"
	}
	text := fmt.Sprintf("%s %s %s", i.ID, i.Kind, i.State)
	if i.State == store.InterruptDecided {
		text += fmt.Sprintf(": %s by %s (%s) under %q at %s, applied %t", i.Verdict, i.DecidedBy, i.Source, i.ResumeID, i.DecidedAt.Format("15:04:05.000000"), i.Applied)
	}
	if !i.Deadline.IsZero() {
		text += ", deadline " + i.Deadline.Format("15:04:05.000000")
	}
	return text + " " + brief(unseal(i.Data)) + " → " + string(unseal(i.Answer))
}

// shownIsStored checks that every question that was shown is in the store, with the same content.
func (b *storeCheck) shownIsStored() (found []violation) {
	seen := make(map[string]bool)
	for _, a := range b.attempts {
		for _, q := range a.shown() {
			if seen[q.ID] {
				continue
			}
			seen[q.ID] = true
			if i := b.interrupts[q.ID]; i == nil || i.Kind != q.Kind || !equalJSON(unseal(i.Data), q.Data) {
				found = append(found, violation{durable, a.Key, fmt.Sprintf("%s saw %s %s, but the store has %s", a.Actor, q.ID, q.Data, describe(i))})
			}
		}
	}
	return found
}

// shown returns the questions in a reply.
func (a *attempt) shown() []question {
	if a.answer.View != nil {
		return a.answer.View.Questions
	}
	if a.answer.Kind != saidOutcome {
		return nil
	}
	outcome, err := fermata.UnmarshalOutcome(a.answer.Outcome)
	waiting, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok {
		return nil
	}
	var list []question
	for _, i := range waiting.Interrupts {
		list = append(list, question{ID: i.ID, Kind: i.Kind, Data: i.Data})
	}
	return list
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// settled checks that every run has settled.
func (b *storeCheck) settled(h store.History) []violation {
	if h.Run.Status.Active() {
		return []violation{{settles, h.Run.StateKey, fmt.Sprintf("it is %s after %d attempts", h.Run.Status, h.Run.Attempts)}}
	}
	return nil
}

// decisions checks that each decision was made by a person who meant exactly that, by the clock
// when it was due, or by the policy for a stamp.
func (b *storeCheck) decisions(h store.History) (found []violation) {
	for _, i := range h.Interrupts {
		if i.State != store.InterruptDecided {
			continue
		}
		broken := b.decision(&i)
		if broken != "" {
			found = append(found, violation{broken, h.Run.StateKey, describe(&i)})
		}
	}
	return found
}

func (b *storeCheck) decision(i *store.Interrupt) (broken invariant) {
	switch i.Source {
	case store.SourceClock:
		switch {
		case i.Verdict != store.VerdictExpire:
			return expiredIsNoNo
		case i.Deadline.IsZero() || i.DecidedAt.Before(i.Deadline):
			return oneTimer
		}
	case store.SourcePolicy:
		if i.Verdict != store.VerdictApprove || !strings.Contains(i.Address, stamp) {
			return approvedOnly
		}
	case store.SourcePerson:
		if !i.Deadline.IsZero() && !i.DecidedAt.Before(i.Deadline) {
			return oneTimer
		}
		if !b.meant(i) {
			return oneVerdict
		}
	}
	return ""
}

// meant reports whether the person who decided submitted this, for this interrupt.
func (b *storeCheck) meant(i *store.Interrupt) bool {
	a := b.decisionsOf[decisionID{i.DecidedBy, i.ResumeID}]
	return a != nil && slices.ContainsFunc(a.aims, func(said intendedVote) bool {
		return said.Interrupt == i.ID && !said.Nonsense && said.verdict() == i.Verdict && finalOf(i, said) == i.ApprovedDigest
	})
}

// verdict returns the verdict of a person's decision.
func (s intendedVote) verdict() store.Verdict {
	switch {
	case s.Approve != nil:
		return store.VerdictApprove
	case s.Word == "reject":
		return store.VerdictReject
	}
	return store.VerdictAnswer
}

// finalOf returns the digest of what a person approves.
func finalOf(i *store.Interrupt, said intendedVote) string {
	if said.Approve == nil {
		return ""
	}
	var asked fermata.ApprovalRequest
	if json.Unmarshal(unseal(i.Data), &asked) != nil {
		return "unreadable"
	}
	return digestOf(asked.Action, *said.Approve)
}

// digestOf returns the digest of an action with these arguments.
func digestOf(name string, args action) string {
	raw, err := json.Marshal(args)
	if err != nil {
		return err.Error()
	}
	digest, err := fermata.ApprovalRequest{Action: name}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: raw})
	if err != nil {
		return err.Error()
	}
	return digest
}

// applied checks that every decision has reached the run, unless the run ended before.
func (b *storeCheck) applied(h store.History) (found []violation) {
	if h.Run.Status != store.StatusCompleted {
		return nil
	}
	for _, i := range h.Interrupts {
		if i.State == store.InterruptDecided && !i.Applied {
			found = append(found, violation{decisionCounts, h.Run.StateKey, describe(&i)})
		}
	}
	return found
}

// gateOf returns the gate of an interrupt.
func gateOf(i store.Interrupt) string {
	var asked struct {
		Action string `json:"action"` // of an approval or an effect in doubt
		Gate   string `json:"gate"`   // of a pick
	}
	if json.Unmarshal(unseal(i.Data), &asked) != nil {
		return ""
	}
	return asked.Action + asked.Gate
}

// output checks that a completed run has passed every gate as decided.
func (b *storeCheck) output(h store.History) (found []violation) {
	if h.Run.Status != store.StatusCompleted {
		return nil
	}
	outcome, err := fermata.UnmarshalOutcome(unseal(h.Run.Outcome))
	done, ok := outcome.(fermata.Completed)
	var o order
	if err = errors.Join(err, json.Unmarshal(done.Output, &o)); err != nil || !ok {
		return []violation{{settles, h.Run.StateKey, fmt.Sprintf("its outcome is %s, %v", unseal(h.Run.Outcome), err)}}
	}
	verdicts := make(map[string]store.Interrupt)
	for _, i := range h.Interrupts {
		if i.State == store.InterruptDecided && i.Kind != fermata.EffectInDoubt.Name() {
			verdicts[gateOf(i)] = i // the last of several picks
		}
	}
	for gate := range stages {
		i, asked := verdicts[gate]
		if !asked || !b.passed(gate, *o.result(gate), &i) {
			found = append(found, violation{noBypass, h.Run.StateKey, fmt.Sprintf("%s has the result %q, but the store has %s", gate, *o.result(gate), describe(&i))})
		}
	}
	return found
}

// passed reports whether the result of a gate matches its decision.
func (b *storeCheck) passed(gate, result string, i *store.Interrupt) bool {
	if gate == pick {
		return i.Verdict == store.VerdictAnswer && string(unseal(i.Answer)) == fmt.Sprintf("%q", result)
	}
	switch i.Verdict {
	case store.VerdictApprove:
		receipt, done := strings.CutPrefix(result, wasDone)
		d := b.receipts[receipt]
		return done && d.Action.Gate == gate && digestOf(gate, d.Action) == i.ApprovedDigest
	case store.VerdictReject:
		return result == wasRejected
	case store.VerdictExpire:
		return result == wasExpired
	case store.VerdictAnswer:
	}
	return false
}

// linearizable checks that the submissions to each interrupt, and the stored result, have a valid
// order.
func (b *storeCheck) linearizable() (found []violation) {
	key := make(map[string]string)
	for _, h := range b.runs {
		for _, i := range h.Interrupts {
			key[i.ID] = h.Run.StateKey
		}
	}
	end := &attempt{verb: doLook}
	for _, a := range b.attempts {
		end.sent = max(end.sent, a.sent, a.got)
	}
	end.sent++
	end.got = end.sent
	end.answer.View = &view{}
	for _, i := range b.interrupts {
		end.answer.View.Questions = append(end.answer.View.Questions, questionOf(*i))
	}
	for id, history := range registers(append(slices.Clone(b.attempts), end)) {
		if i := b.interrupts[id]; i != nil && !linearizes(history, !i.Deadline.IsZero()) {
			found = append(found, violation{linearizable, key[id], describe(i)})
		}
	}
	return found
}
