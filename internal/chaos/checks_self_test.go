//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// faultlessRun is the evidence and the stored data of one order without faults: ann approved
// charge, and bob was told that he was too late; notify expired; reserve was rejected; blue was
// picked; ship was approved with another amount.
type faultlessRun struct {
	evidence
	run    store.History
	double bool // there is another run of the same state key
}

var (
	noon  = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	boxed = func(data string) []byte { return plaintextSealer{}.Seal("somewhere", []byte(data)) }
)

func newFaultlessRun() *faultlessRun {
	p := &faultlessRun{run: store.History{Run: store.Run{Account: account, ID: "run", StateKey: "order-1", Status: store.StatusCompleted, Fence: 7}}}
	p.attempt(&attempt{verb: doStart, answer: answer{Kind: saidPending}})
	p.event(store.EventCreated, "")
	p.ask(charge, 5)
	p.decide(charge, "ann", store.VerdictApprove, 5)
	p.refuse(charge, "bob", "ann", store.VerdictApprove)
	p.do(charge, 5)
	p.ask(reserve, 5)
	p.ask(notify, 5)
	p.decide(reserve, "bob", store.VerdictReject, 0)
	p.expire(notify)
	p.ask(pick, 0)
	p.decide(pick, "ann", store.VerdictAnswer, 0)
	p.allow(stamp, 5)
	p.do(stamp, 5)
	p.ask(ship, 5)
	p.decide(ship, "ann", store.VerdictApprove, 6)
	p.do(ship, 6)
	p.event(store.EventCompleted, "")
	p.finish(order{Key: "order-1", Amount: 5, Rounds: 1, Charge: "done receipt-charge", Reserve: wasRejected, Notify: wasExpired, Pick: "blue", Stamp: "done receipt-stamp", Ship: "done receipt-ship"})
	return p
}

// next returns the time of the next event.
func (p *faultlessRun) next() time.Duration {
	return time.Duration(len(p.run.Events)+2*len(p.attempts)) * time.Millisecond
}

func (p *faultlessRun) event(kind store.EventKind, interrupt string) {
	p.run.Events = append(p.run.Events, store.Event{Run: "run", Seq: int64(len(p.run.Events) + 1), Kind: kind, Interrupt: interrupt})
}

func questionText(gate string, amount int) (kind, data string) {
	if gate == pick {
		return picks.Name(), `{"order":"order-1","gate":"pick","round":0}`
	}
	return fermata.Approval.Name(), fmt.Sprintf(`{"action":%q,"args":{"order":"order-1","gate":%[1]q,"amount":%d}}`, gate, amount)
}

func (p *faultlessRun) ask(gate string, amount int) {
	kind, data := questionText(gate, amount)
	p.run.Interrupts = append(p.run.Interrupts, store.Interrupt{Account: account, Run: "run", State: store.InterruptPending, Deadline: noon,
		NewInterrupt: store.NewInterrupt{ID: gate, Address: "node:" + gate, Kind: kind, Data: boxed(data)}})
	p.event(store.EventAsked, gate)
	p.look()
}

// look is a view by a person.
func (p *faultlessRun) look() {
	v := &view{Run: "run", Status: store.StatusWaiting}
	for _, i := range p.run.Interrupts {
		v.Questions = append(v.Questions, questionOf(i))
	}
	p.attempt(&attempt{verb: doLook, answer: answer{Kind: saidView, View: v}})
}

func (p *faultlessRun) attempt(a *attempt) {
	a.Account, a.Key = account, "order-1"
	a.sent, a.got = p.next(), p.next()+1
	p.attempts = append(p.attempts, a)
}

func (p *faultlessRun) interrupt(id string) *store.Interrupt {
	return &p.run.Interrupts[slices.IndexFunc(p.run.Interrupts, func(i store.Interrupt) bool { return i.ID == id })]
}

// said is a decision of a person, with its intended meaning.
func (p *faultlessRun) said(gate, by string, verdict store.Verdict, amount int) *attempt {
	kind, _ := questionText(gate, 0)
	meant := intendedVote{Interrupt: gate, Kind: kind, Gate: gate}
	value := `"blue"`
	switch verdict {
	case store.VerdictApprove:
		meant.Approve = &action{"order-1", gate, amount}
		value = `{"verb":"approve"}`
	case store.VerdictReject:
		meant.Word, value = "reject", `{"verb":"reject"}`
	}
	return &attempt{
		verb: doDecide, request: request{Actor: by, ResumeID: by + " on " + gate, Targets: map[string]json.RawMessage{gate: json.RawMessage(value)}}, aims: []intendedVote{meant},
	}
}

func (p *faultlessRun) decide(gate, by string, verdict store.Verdict, amount int) {
	a := p.said(gate, by, verdict, amount)
	a.answer = answer{Kind: saidOutcome, Outcome: json.RawMessage(`{"status":"completed"}`)}
	p.attempt(a)
	i := p.interrupt(gate)
	i.State, i.Verdict, i.DecidedBy, i.Source, i.ResumeID, i.DecidedAt, i.Applied = store.InterruptDecided, verdict, by, store.SourcePerson, a.ResumeID, noon.Add(-time.Second), true
	i.Answer = boxed(string(a.Targets[gate]))
	if verdict == store.VerdictApprove {
		i.ApprovedDigest = digestOf(gate, *a.aims[0].Approve)
	}
	p.event(store.EventDecided, gate)
	p.look()
}

func (p *faultlessRun) refuse(gate, by, winner string, verdict store.Verdict) {
	a := p.said(gate, by, store.VerdictReject, 0)
	a.answer = answer{Kind: saidRefused, Result: store.ResultAlreadyDecided, Interrupt: gate, By: winner, Verdict: verdict}
	p.attempt(a)
}

func (p *faultlessRun) expire(gate string) {
	i := p.interrupt(gate)
	i.State, i.Verdict, i.DecidedBy, i.Source, i.DecidedAt, i.Applied = store.InterruptDecided, store.VerdictExpire, byClock, store.SourceClock, noon, true
	p.event(store.EventExpired, gate)
	p.look()
}

func (p *faultlessRun) allow(gate string, amount int) {
	kind, data := questionText(gate, amount)
	p.run.Interrupts = append(p.run.Interrupts, store.Interrupt{Account: account, Run: "run", State: store.InterruptDecided, Verdict: store.VerdictApprove, Source: store.SourcePolicy, DecidedBy: "policy",
		ApprovedDigest: digestOf(gate, action{"order-1", gate, amount}), Applied: true,
		NewInterrupt: store.NewInterrupt{ID: gate, Address: "node:" + gate, Kind: kind, Data: boxed(data)}})
	p.event(store.EventDecided, gate)
}

func (p *faultlessRun) do(gate string, amount int) {
	p.event(store.EventEffectBegun, gate)
	args := action{"order-1", gate, amount}
	p.deeds = append(p.deeds, effectCall{call: call{Key: "key-" + gate, Action: args, Life: 1}, receipt: "receipt-" + gate, at: p.next()})
	p.run.Effects = append(p.run.Effects, store.Effect{State: store.EffectSucceeded, Fence: 3,
		NewEffect: store.NewEffect{Interrupt: gate, Attempt: 1, IdempotencyKey: "key-" + gate, ActionDigest: digestOf(gate, args)}})
	p.event(store.EventEffectEnded, gate)
}

func (p *faultlessRun) finish(o order) {
	output, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	outcome, err := json.Marshal(fermata.Completed{Run: "run", Output: output})
	if err != nil {
		panic(err)
	}
	p.run.Run.Outcome = boxed(string(outcome))
}

func (p *faultlessRun) check() []violation {
	runs := []store.History{p.run}
	if p.double {
		runs = append(runs, store.History{Run: store.Run{StateKey: "order-1", Status: store.StatusCompleted}})
	}
	return newStoreCheck(p.evidence, runs).check()
}

// decision returns the attempt with an id.
func (p *faultlessRun) decision(id string) *attempt {
	return p.attempts[slices.IndexFunc(p.attempts, func(a *attempt) bool { return a.ResumeID == id })]
}

// again repeats a decision with a change.
func (p *faultlessRun) again(id string, change func(*attempt)) {
	repeated := *p.decision(id)
	change(&repeated)
	p.attempt(&repeated)
}

func TestChecks_FaultlessRunHasNoViolations(t *testing.T) {
	for _, v := range newFaultlessRun().check() {
		t.Error(v)
	}
}

func TestChecks_DetectViolations(t *testing.T) {
	const annCharge, bobCharge, annShip = "ann on charge", "bob on charge", "ann on ship"
	for name, test := range map[string]struct {
		spoil func(p *faultlessRun)
		want  invariant
	}{
		"an effect is executed twice":                              {func(p *faultlessRun) { p.deeds = append(p.deeds, p.deeds[0]) }, onceOnly},
		"an effect is executed before the approval":                {func(p *faultlessRun) { p.deeds[0].at = 0 }, noBypass},
		"an effect is executed with other arguments than approved": {func(p *faultlessRun) { p.deeds[2].Action.Amount = 5 }, noBypass},
		"a rejected gate is executed":                              {func(p *faultlessRun) { p.do(reserve, 5) }, approvedOnly},
		"an expired gate is executed":                              {func(p *faultlessRun) { p.do(notify, 5) }, approvedOnly},
		"an executed effect is not in the ledger":                  {func(p *faultlessRun) { p.run.Effects = p.run.Effects[1:] }, approvedOnly},
		"an effect in the ledger was not executed":                 {func(p *faultlessRun) { p.deeds = p.deeds[1:] }, approvedOnly},
		"an effect begins before the decision":                     {func(p *faultlessRun) { e := p.run.Events; e[2].Kind, e[3].Kind = e[3].Kind, e[2].Kind }, approvedOnly},
		"an effect has two keys": {func(p *faultlessRun) {
			second := p.run.Effects[0]
			second.Attempt, second.IdempotencyKey = 2, "another"
			second.State = store.EffectFailed
			p.run.Effects = append(p.run.Effects, second)
		}, onceOnly},
		"two people are told that they decided": {func(p *faultlessRun) { p.decision(bobCharge).answer = answer{Kind: saidPending} }, oneVerdict},
		"an accepted decision is lost": {func(p *faultlessRun) {
			*p.interrupt(ship) = store.Interrupt{State: store.InterruptPending, NewInterrupt: p.interrupt(ship).NewInterrupt}
		}, oneVerdict},
		"an accepted decision is overwritten": {func(p *faultlessRun) { p.interrupt(charge).DecidedBy = "bob"; p.interrupt(charge).ResumeID = bobCharge }, oneVerdict},
		"the verdict differs":                 {func(p *faultlessRun) { p.interrupt(reserve).Verdict = store.VerdictAnswer }, oneVerdict},
		"no person made the decision":         {func(p *faultlessRun) { p.interrupt(pick).ResumeID = "made up" }, oneVerdict},
		"the refusal names another winner":    {func(p *faultlessRun) { p.decision(bobCharge).answer.By = "carl" }, oneVerdict},
		"the refusal has no reason":           {func(p *faultlessRun) { p.decision(bobCharge).answer.Interrupt = "nothing" }, oneVerdict},
		"it is decided twice":                 {func(p *faultlessRun) { p.event(store.EventDecided, charge) }, oneVerdict},
		"a decision is not applied":           {func(p *faultlessRun) { p.interrupt(ship).Applied = false }, decisionCounts},
		"a repeated id is refused": {func(p *faultlessRun) {
			p.again(annCharge, func(a *attempt) { a.answer = p.decision(bobCharge).answer })
		}, oneAnswer},
		"a repeated id gets another outcome": {func(p *faultlessRun) {
			p.again(annCharge, func(a *attempt) { a.answer.Outcome = json.RawMessage(`{}`) })
		}, oneAnswer},
		"a repeated id becomes invalid": {func(p *faultlessRun) { p.again(annCharge, func(a *attempt) { a.answer = answer{Kind: saidUnfit} }) }, oneAnswer},
		"a refused id becomes accepted": {func(p *faultlessRun) { p.again(bobCharge, func(a *attempt) { a.answer = answer{Kind: saidPending} }) }, oneAnswer},
		"another decision is accepted under the same id": {func(p *faultlessRun) {
			p.again(annShip, func(a *attempt) { a.Targets = map[string]json.RawMessage{ship: json.RawMessage(`{"verb":"reject"}`)} })
		}, oneAnswer},
		"a gate was never requested": {func(p *faultlessRun) {
			p.run.Interrupts = slices.DeleteFunc(p.run.Interrupts, func(i store.Interrupt) bool { return i.ID == notify })
		}, noBypass},
		"a gate is requested before an earlier one is decided": {func(p *faultlessRun) { e := p.run.Events; e[2].Interrupt, e[1].Interrupt = reserve, reserve }, noBypass},
		"a rejected gate counts as done": {func(p *faultlessRun) {
			p.finish(order{Key: "order-1", Charge: "done receipt-charge", Reserve: "done receipt-charge", Notify: wasExpired, Pick: "blue", Stamp: "done receipt-stamp", Ship: "done receipt-ship"})
		}, noBypass},
		"an expired gate counts as rejected": {func(p *faultlessRun) {
			p.finish(order{Key: "order-1", Charge: "done receipt-charge", Reserve: wasRejected, Notify: wasRejected, Pick: "blue", Stamp: "done receipt-stamp", Ship: "done receipt-ship"})
		}, noBypass},
		"another account gets access": {func(p *faultlessRun) {
			p.again(annCharge, func(a *attempt) {})
			p.attempts[len(p.attempts)-1].Account = "other"
		}, noTrespass},
		"a shown question is not stored":               {func(p *faultlessRun) { p.attempts[1].answer.View.Questions[0].ID = "lost" }, durable},
		"a shown question differs from the stored one": {func(p *faultlessRun) { p.interrupt(pick).Data = boxed(`{"order":"order-2","gate":"pick"}`) }, durable},
		"an acknowledged start created no run":         {func(p *faultlessRun) { p.run.Run.StateKey = "order-2" }, durable},
		"a start created two runs":                     {func(p *faultlessRun) { p.double = true }, oneAnswer},
		"an acknowledged cancel had no effect":         {func(p *faultlessRun) { p.attempt(&attempt{verb: doCancel, answer: answer{Kind: saidDone}}) }, durable},
		"an event is missing":                          {func(p *faultlessRun) { p.run.Events = slices.Delete(p.run.Events, 4, 5) }, durable},
		"a decision after the deadline":                {func(p *faultlessRun) { p.interrupt(reserve).DecidedAt = noon }, oneTimer},
		"an expiry before the deadline":                {func(p *faultlessRun) { p.interrupt(notify).DecidedAt = noon.Add(-1) }, oneTimer},
		"the clock approves":                           {func(p *faultlessRun) { p.interrupt(notify).Verdict = store.VerdictApprove }, expiredIsNoNo},
		"an invalid answer is accepted":                {func(p *faultlessRun) { p.decision(annCharge).aims[0].Nonsense = true }, badIsNothing},
		"a partial decision is accepted":               {func(p *faultlessRun) { p.decision(annCharge).aims = nil }, badIsNothing},
		"an effect begins after the end of the run":    {func(p *faultlessRun) { p.event(store.EventEffectBegun, charge) }, fenced},
		"a run ends twice":                             {func(p *faultlessRun) { p.event(store.EventFailed, "") }, fenced},
		"a run does not end":                           {func(p *faultlessRun) { p.run.Run.Status = store.StatusReady }, settles},
		"a decision is no longer visible": {func(p *faultlessRun) {
			p.attempts[len(p.attempts)-1].answer.View.Questions[0] = p.attempts[1].answer.View.Questions[0]
		}, linearizable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFaultlessRun()
			test.spoil(p)
			found := p.check()
			if !slices.ContainsFunc(found, func(v violation) bool { return v.broken == test.want }) {
				t.Errorf("found %v, want %s", found, test.want)
			}
		})
	}
}
