//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-go/fermata/store"
)

// violation is something that must not happen.
type violation struct {
	broken invariant
	key    string // of the run
	text   string
}

// invariant is what is violated.
type invariant string

// The invariants of the design that are checked here, in short.
const (
	oneVerdict     invariant = "I1: one verdict per interrupt, and an acknowledged one is the recorded one"
	decisionCounts invariant = "I2: an accepted decision is applied"
	oneAnswer      invariant = "I3: one resume id, one answer"
	onceOnly       invariant = "I4: no effect twice"
	approvedOnly   invariant = "I4: no effect without an approve of exactly this"
	noBypass       invariant = "I5: no gate is passed without an answer to it"
	noTrespass     invariant = "I8: no account touches another's"
	durable        invariant = "I9: what is announced is durable"
	oneTimer       invariant = "I10: a timer acts once, never after the decision, and nothing is decided after its deadline"
	expiredIsNoNo  invariant = "I11: expired is not rejected, and approves nothing"
	badIsNothing   invariant = "I13: a bad answer changes nothing"
	fenced         invariant = "I16: a write with an old fence is refused"
	settles        invariant = "I17: every run settles"
	linearizable   invariant = "the answers about an interrupt have an order in which they make sense"
)

func (v violation) String() string { return fmt.Sprintf("%s\n    %s: %s", v.broken, v.key, v.text) }

// evidence is what people and the outside world know; no store is needed for it.
type evidence struct {
	attempts []*attempt
	deeds    []effectCall
}

// outside checks what can be seen from outside, whatever protocol is spoken inside.
func (e *evidence) outside() []violation {
	return slices.Concat(e.doneOnce(), e.askedFor(), e.oneAnswerPerID(), e.oneWinner(), e.nonsenseRefused(), e.trespassRefused())
}

// doneOnce: nobody gave a reason to do anything twice, as those who say that something did not happen see to it that it does not.
func (e *evidence) doneOnce() (found []violation) {
	first := make(map[string]effectCall)
	for _, d := range e.deeds {
		before, twice := first[d.Key]
		if twice {
			found = append(found, violation{onceOnly, d.Action.Order, fmt.Sprintf("%s was done at %.3fs by life %d and at %.3fs by life %d, with key %s",
				d.Action.Gate, before.at.Seconds(), before.Life, d.at.Seconds(), d.Life, d.Key)})
			continue
		}
		first[d.Key] = d
	}
	return found
}

// askedFor: for everything that was done, somebody had asked for exactly that at that gate before. Only stamps need nobody.
func (e *evidence) askedFor() (found []violation) {
	wanted := make(map[action]*attempt) // the first who asked for it
	for _, a := range e.attempts {
		for _, meant := range a.aims {
			if meant.Approve == nil {
				continue
			}
			if before := wanted[*meant.Approve]; before == nil || a.sent < before.sent {
				wanted[*meant.Approve] = a
			}
		}
	}
	for _, d := range e.deeds {
		a := wanted[d.Action]
		if d.Action.Gate == stamp || a != nil && a.sent <= d.at {
			continue
		}
		found = append(found, violation{noBypass, d.Action.Order, fmt.Sprintf("%s was done for %d at %.3fs by life %d, and nobody had approved that",
			d.Action.Gate, d.Action.Amount, d.at.Seconds(), d.Life)})
	}
	return found
}

// decided returns the answered decisions by id.
func (e *evidence) decided() map[decisionID][]*attempt {
	byID := make(map[decisionID][]*attempt)
	for _, a := range e.attempts {
		if a.verb == doDecide && a.got != 0 && a.Account == account {
			byID[a.id()] = append(byID[a.id()], a)
		}
	}
	return byID
}

// oneAnswerPerID: whatever was said under an id gets one answer; something else under it gets none.
func (e *evidence) oneAnswerPerID() (found []violation) {
	for _, list := range e.decided() {
		slices.SortFunc(list, func(a, b *attempt) int { return int(a.got - b.got) })
		var first, outcome *attempt
		for _, a := range list {
			switch a.answer.Kind {
			case saidUnfit, saidReused, saidConflict: // nothing was recorded for it
				if first != nil && a.answer.Kind == saidUnfit && a.sent > first.got && sameBody(first, a) {
					found = append(found, contradiction(first, a))
				}
				continue
			}
			if first == nil {
				first = a
			} else if !sameReceipt(first, a) {
				found = append(found, contradiction(first, a))
			}
			if a.answer.Kind != saidOutcome {
				continue
			}
			if outcome == nil {
				outcome = a
			} else if !bytes.Equal(outcome.answer.Outcome, a.answer.Outcome) {
				found = append(found, contradiction(outcome, a))
			}
		}
	}
	return found
}

func contradiction(a, b *attempt) violation {
	return violation{oneAnswer, a.Key, fmt.Sprintf("\n        %s\n        %s", a, b)}
}

func sameBody(a, b *attempt) bool {
	return a.Key == b.Key && maps.EqualFunc(a.Targets, b.Targets, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

func sameReceipt(a, b *attempt) bool {
	if !sameBody(a, b) {
		return false
	}
	if a.answer.accepted() || b.answer.accepted() {
		return a.answer.accepted() == b.answer.accepted()
	}
	return a.answer.Kind == b.answer.Kind && a.answer.Result == b.answer.Result && a.answer.Interrupt == b.answer.Interrupt
}

// oneWinner: of all who decide on an interrupt, one is told that it counts.
func (e *evidence) oneWinner() (found []violation) {
	winner := make(map[string]*attempt)
	for _, a := range e.attempts {
		if a.verb != doDecide || !a.answer.accepted() {
			continue
		}
		for id := range a.Targets {
			if before := winner[id]; before != nil && before.id() != a.id() {
				found = append(found, violation{oneVerdict, a.Key, fmt.Sprintf("%s:\n        %s\n        %s", id, before, a)})
			}
			winner[id] = a
		}
	}
	return found
}

// nonsenseRefused: what is no answer, or answers what nobody asked, is not accepted.
func (e *evidence) nonsenseRefused() (found []violation) {
	for _, a := range e.attempts {
		if a.verb != doDecide || !a.answer.accepted() || a.Account != account {
			continue
		}
		if len(a.aims) != len(a.Targets) || slices.ContainsFunc(a.aims, func(meant intendedVote) bool { return meant.Nonsense }) {
			found = append(found, violation{badIsNothing, a.Key, a.String()})
		}
	}
	return found
}

// trespassRefused: to another account there is no such run.
func (e *evidence) trespassRefused() (found []violation) {
	for _, a := range e.attempts {
		if a.Account != account && a.got != 0 && a.answer.Kind != saidNoRun {
			found = append(found, violation{noTrespass, a.Key, a.String()})
		}
	}
	return found
}

// refusedFor reports whether a refusal can be explained by what became of the interrupt.
func refusedFor(result store.DecisionResult, i *store.Interrupt) bool {
	switch result {
	case store.ResultAlreadyDecided:
		return i != nil && i.State == store.InterruptDecided
	case store.ResultExpired:
		return i != nil && i.State != store.InterruptPending && (i.State == store.InterruptWithdrawn || i.Verdict == store.VerdictExpire)
	case store.ResultWithdrawn:
		return i != nil
	case store.ResultNotFound:
		return i == nil
	case store.ResultAccepted, store.ResultDigestMismatch:
	}
	return false
}
