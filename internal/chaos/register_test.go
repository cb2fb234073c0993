//go:build unix

package chaos

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fermata-go/fermata/internal/store"
)

// An interrupt is a register that is written once: by the first person who decides, or by the
// clock. registerModel defines the allowed replies.

// registerInput is an operation on a register.
type registerInput struct {
	op registerOp
	id decisionID // of a write
}

type registerOp int

const (
	opWrite  registerOp = iota
	opRead              // a view, or the final state of the store
	opLapse             // the deadline passes
	opExpire            // the clock decides, some time after
)

// registerOutput is the result of an operation.
type registerOutput struct {
	known  bool                 // false: there was no reply
	result store.DecisionResult // of a write
	winner decisionID           // of a read; zero if undecided
	by     string               // of a refusal or a read: who decided
}

// registerState is the value of the register.
type registerState struct {
	winner  decisionID
	lapsed  bool
	expired bool
}

const byClock = "clock"

var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(registerState).step(input.(registerInput), output.(registerOutput))
	},
}

func (s registerState) decided() bool { return s.expired || s.winner != decisionID{} }

func (s registerState) step(in registerInput, out registerOutput) (bool, registerState) {
	switch in.op {
	case opLapse:
		s.lapsed = true
		return true, s
	case opExpire:
		if s.winner == (decisionID{}) {
			if !s.lapsed {
				return false, s
			}
			s.expired = true
		}
		return true, s
	case opRead:
		if s.expired {
			return out.by == byClock, s
		}
		return out.winner == s.winner && out.by == s.winner.actor, s
	case opWrite:
	}
	open := !s.decided() && !s.lapsed
	switch {
	case !out.known:
		if open {
			s.winner = in.id
		}
		return true, s
	case out.result == store.ResultAccepted:
		legal := open || s.winner == in.id
		if legal {
			s.winner = in.id
		}
		return legal, s
	case s.winner == in.id: // the winner is not refused
		return false, s
	case out.result == store.ResultAlreadyDecided:
		by := s.winner.actor
		if s.expired {
			by = byClock
		}
		return s.decided() && (out.by == "" || out.by == by), s
	case out.result == store.ResultExpired:
		return s.lapsed && !s.decided() || s.expired, s
	case out.result == store.ResultWithdrawn:
		return true, s
	}
	return false, s
}

// registers converts the replies to one history for each interrupt. Attempts of one id without a
// reply are one open operation: it makes no difference which of them arrived.
func registers(attempts []*attempt) map[string][]porcupine.Operation {
	all := make(map[string][]porcupine.Operation)
	open := make(map[string]map[decisionID]int) // the index of the open operation
	put := func(interrupt string, in registerInput, out registerOutput, call, back time.Duration) {
		all[interrupt] = append(all[interrupt], porcupine.Operation{ClientId: len(all[interrupt]), Input: in, Call: int64(call), Output: out, Return: int64(back)})
	}
	for _, a := range attempts {
		switch {
		case a.verb == doLook && a.answer.View != nil:
			for _, q := range a.answer.View.Questions {
				if q.Source == store.SourcePolicy { // it was never requested
					continue
				}
				put(q.ID, registerInput{op: opRead}, sawRegister(q), a.sent, a.got)
			}
		case a.verb != doDecide || a.Account != account || len(a.aims) != len(a.Targets):
		case a.got == 0:
			for id := range a.Targets {
				if open[id] == nil {
					open[id] = make(map[decisionID]int)
				}
				if _, known := open[id][a.id()]; !known {
					open[id][a.id()] = len(all[id])
					put(id, registerInput{opWrite, a.id()}, registerOutput{}, a.sent, math.MaxInt64)
				} else if first := &all[id][open[id][a.id()]]; int64(a.sent) < first.Call {
					first.Call = int64(a.sent)
				}
			}
		case a.answer.accepted():
			for id := range a.Targets {
				put(id, registerInput{opWrite, a.id()}, registerOutput{known: true, result: store.ResultAccepted}, a.sent, a.got)
			}
		case a.answer.Kind == saidRefused: // it is about one interrupt, not the others
			put(a.answer.Interrupt, registerInput{opWrite, a.id()}, registerOutput{known: true, result: a.answer.Result, by: a.answer.By}, a.sent, a.got)
		}
	}
	return all
}

func sawRegister(q question) registerOutput {
	out := registerOutput{known: true}
	if q.State == store.InterruptDecided {
		out.by = q.By
		if q.Verdict != store.VerdictExpire {
			out.winner = decisionID{q.By, q.ResumeID}
		}
	}
	return out
}

// linearizes reports whether there is an order of all operations in which every reply is valid. The
// clock may act at any time if the interrupt has a deadline.
func linearizes(history []porcupine.Operation, deadline bool) bool {
	if deadline {
		for _, op := range []registerOp{opLapse, opExpire} {
			history = append(history, porcupine.Operation{ClientId: len(history), Input: registerInput{op: op}, Output: registerOutput{}, Return: math.MaxInt64})
		}
	}
	return porcupine.CheckOperations(registerModel, history)
}

func TestRegister_RejectsImpossibleHistories(t *testing.T) {
	ann, bob := decisionID{"ann", "1"}, decisionID{"bob", "2"}
	write := func(id decisionID, result store.DecisionResult, by string, call, back int64) porcupine.Operation {
		return porcupine.Operation{Input: registerInput{opWrite, id}, Output: registerOutput{known: true, result: result, by: by}, Call: call, Return: back}
	}
	lost := func(id decisionID, call int64) porcupine.Operation {
		return porcupine.Operation{Input: registerInput{opWrite, id}, Output: registerOutput{}, Call: call, Return: math.MaxInt64}
	}
	read := func(winner decisionID, by string, call, back int64) porcupine.Operation {
		return porcupine.Operation{Input: registerInput{op: opRead}, Output: registerOutput{known: true, winner: winner, by: by}, Call: call, Return: back}
	}
	nobody := decisionID{}
	for name, test := range map[string]struct {
		history  []porcupine.Operation
		deadline bool
		legal    bool
	}{
		"two accepted":                      {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 2), write(bob, store.ResultAccepted, "", 3, 4)}},
		"two accepted at the same time":     {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 4), write(bob, store.ResultAccepted, "", 2, 3)}},
		"nobody won":                        {history: []porcupine.Operation{write(ann, store.ResultAlreadyDecided, "", 1, 2)}},
		"accepted, then refused":            {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 2), write(ann, store.ResultAlreadyDecided, "", 3, 4)}},
		"refused before the winner":         {history: []porcupine.Operation{write(bob, store.ResultAlreadyDecided, "", 1, 2), write(ann, store.ResultAccepted, "", 3, 4)}},
		"the wrong winner is named":         {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 2), write(bob, store.ResultAlreadyDecided, "carl", 3, 4)}},
		"accepted, then not visible":        {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 2), read(nobody, "", 3, 4)}},
		"visible, then gone":                {history: []porcupine.Operation{lost(ann, 1), read(ann, "ann", 2, 3), read(nobody, "", 4, 5)}},
		"accepted after the deadline":       {history: []porcupine.Operation{read(nobody, byClock, 1, 2), write(ann, store.ResultAccepted, "", 3, 4)}, deadline: true},
		"too late without a deadline":       {history: []porcupine.Operation{write(ann, store.ResultExpired, "", 1, 2)}},
		"too late, then accepted":           {history: []porcupine.Operation{write(ann, store.ResultExpired, "", 1, 2), write(bob, store.ResultAccepted, "", 3, 4)}, deadline: true},
		"expired although it was decided":   {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 2), read(nobody, byClock, 3, 4)}, deadline: true},
		"a lost reply, then its repeat":     {history: []porcupine.Operation{lost(ann, 1), write(bob, store.ResultAlreadyDecided, "ann", 2, 3), write(ann, store.ResultAccepted, "", 5, 6)}, legal: true},
		"a lost attempt never arrived":      {history: []porcupine.Operation{lost(ann, 1), write(bob, store.ResultAccepted, "", 2, 3), read(bob, "bob", 4, 5)}, legal: true},
		"one of two at the same time":       {history: []porcupine.Operation{write(ann, store.ResultAccepted, "", 1, 4), write(bob, store.ResultAlreadyDecided, "ann", 2, 3)}, legal: true},
		"too late before the clock decided": {history: []porcupine.Operation{write(ann, store.ResultExpired, "", 1, 2), read(nobody, "", 3, 4), read(nobody, byClock, 5, 6)}, deadline: true, legal: true},
	} {
		if linearizes(test.history, test.deadline) != test.legal {
			t.Errorf("%s: legal must be %t", name, test.legal)
		}
	}
}
