//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

// violation is a violated invariant.
type violation struct {
	broken invariant
	key    string // of the run
	text   string
}

// invariant is the name of an invariant.
type invariant = simtest.Invariant

// The invariants that are checked here, in short.
const (
	oneVerdict     invariant = simtest.OneVerdict
	decisionCounts invariant = "I2: an accepted decision is applied"
	oneAnswer      invariant = "I3: one resume id, one answer"
	onceOnly       invariant = simtest.OnceOnly
	approvedOnly   invariant = simtest.ApprovedOnly
	noBypass       invariant = "I5: no gate is passed without an answer to it"
	noTrespass     invariant = "I8: no account accesses another account's data"
	durable        invariant = simtest.Durable
	oneTimer       invariant = "I10: a timer acts once, never after the decision, and nothing is decided after its deadline"
	expiredIsNoNo  invariant = "I11: expired is not rejected, and approves nothing"
	badIsNothing   invariant = "I13: an invalid answer changes nothing"
	fenced         invariant = simtest.Fenced
	settles        invariant = "I17: every run settles"
	linearizable   invariant = "the replies about an interrupt are linearizable"
)

func (v violation) String() string { return fmt.Sprintf("%s\n    %s: %s", v.broken, v.key, v.text) }

// evidence is what people and the outside world know; it needs no store.
type evidence struct {
	attempts []*attempt
	deeds    []effectCall
}

// outside checks what is visible from outside, whatever the protocol.
func (e *evidence) outside() []violation {
	return slices.Concat(e.doneOnce(), e.askedFor(), e.oneAnswerPerID(), e.oneWinner(), e.nonsenseRefused(), e.trespassRefused())
}

// doneOnce checks that nothing was executed twice. People who say that an effect did not happen
// make sure that it does not.
func (e *evidence) doneOnce() (found []violation) {
	first := make(map[string]effectCall)
	for _, d := range e.deeds {
		before, twice := first[d.Key]
		if twice {
			found = append(found, violation{onceOnly, d.Action.Order, fmt.Sprintf("%s was executed at %.3fs by replica %d and at %.3fs by replica %d, with key %s",
				d.Action.Gate, before.at.Seconds(), before.Life, d.at.Seconds(), d.Life, d.Key)})
			continue
		}
		first[d.Key] = d
	}
	return found
}

// askedFor checks that every executed action was approved before, at that gate. Only stamps need no
// approval.
func (e *evidence) askedFor() (found []violation) {
	wanted := make(map[action]*attempt) // the first approval
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
		found = append(found, violation{noBypass, d.Action.Order, fmt.Sprintf("%s was executed for %d at %.3fs by replica %d without an approval",
			d.Action.Gate, d.Action.Amount, d.at.Seconds(), d.Life)})
	}
	return found
}

// decided returns the decisions with a reply, by id.
func (e *evidence) decided() map[decisionID][]*attempt {
	byID := make(map[decisionID][]*attempt)
	for _, a := range e.attempts {
		if a.verb == doDecide && a.got != 0 && a.Account == account {
			byID[a.id()] = append(byID[a.id()], a)
		}
	}
	return byID
}

// oneAnswerPerID checks that everything submitted under an id gets one reply, and anything else
// under it is refused.
func (e *evidence) oneAnswerPerID() (found []violation) {
	for _, list := range e.decided() {
		slices.SortFunc(list, func(a, b *attempt) int { return int(a.got - b.got) })
		var first, outcome *attempt
		for _, a := range list {
			switch a.answer.Kind {
			case saidUnfit, saidReused: // nothing was recorded for it
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

// oneWinner checks that of all decisions on an interrupt, one is accepted.
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

// nonsenseRefused checks that invalid answers and answers to unknown interrupts are refused.
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

// trespassRefused checks that another account cannot access the run.
func (e *evidence) trespassRefused() (found []violation) {
	for _, a := range e.attempts {
		if a.Account != account && a.got != 0 && a.answer.Kind != saidNoRun {
			found = append(found, violation{noTrespass, a.Key, a.String()})
		}
	}
	return found
}

// refusedFor reports whether a refusal can be explained by the state of the interrupt.
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
