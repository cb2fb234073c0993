package sqlite

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/store"
)

func (m *model) step() {
	m.now = m.now.Add(pick(m, "time passes", time.Microsecond, time.Microsecond, 30*time.Microsecond, 2*time.Hour))
	if moments := m.moments(); len(moments) > 0 && !m.often() {
		m.now = pick(m, "moment", moments...)
	}
	owner := []func(){m.begin, m.rest, m.decide, m.begin, m.end, m.rest, m.save, m.renew, m.release, m.setRef}
	others := []func(){m.decide, m.claim, m.end, m.create, m.expire, m.cancel}
	steps := append(slices.Clone(owner), others...)
	if m.often() { // mostly somebody does what they can do
		steps = others
		if len(m.good()) > 0 {
			steps = owner
		}
	}
	steps[rapid.IntRange(0, len(steps)-1).Draw(m.T, "step")]()
}

func (m *model) create() {
	account := m.account()
	n := store.NewRun{
		Account: account, ID: m.run(account), StateKey: m.stateKey(), Provider: "p\x00", Graph: "g\xff", Ref: m.bytes(), Input: m.bytes(),
		InputDigest: "d", Owner: "creator", Lease: m.duration(),
	}
	lease, err := both(m, "Create", func(r store.Runs) (store.Lease, error) { return r.Create(m.Context(), n) })
	if err == nil {
		m.leases = append(m.leases, lease)
		m.made[store.Key{Account: account, Run: n.ID}] = n.StateKey
	}
}

func (m *model) claim() {
	c := store.Claim{Owner: pick(m, "owner", "", "w\x00"), Lease: m.duration()}
	if pick(m, "one run", false, false, true) {
		c.Account = m.account()
		c.Run = m.run(c.Account)
	}
	work, _ := both(m, "Claim", func(r store.Runs) (*store.Work, error) { return r.Claim(m.Context(), c) })
	if work != nil {
		m.leases = append(m.leases, work.Lease)
	}
}

func (m *model) rest() {
	lease := m.lease()
	rest := store.Rest{
		Status:  pick(m, "status", store.Waiting, store.Waiting, store.Waiting, store.Waiting, store.Waiting, store.Parked, store.Completed, store.Failed),
		Outcome: m.bytes(),
	}
	for range rapid.IntRange(0, 4).Draw(m.T, "open") {
		n := store.NewInterrupt{
			ID: m.interrupt(lease.Run), Address: "at\x00", Kind: "kind\xff", Data: m.bytes(), Schema: m.bytes(), Shown: "shown",
			Action: pick(m, "action", "", "action"),
		}
		if pick(m, "deadline", false, false, true) {
			n.Timeout = m.duration()
		}
		rest.Open = append(rest.Open, n)
	}
	for range rapid.IntRange(0, 2).Draw(m.T, "applied") {
		decided := m.asked(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.State == store.Decided && !i.Applied })
		rest.Applied = append(rest.Applied, decided.ID)
	}
	both(m, "Rest", func(r store.Runs) (store.Status, error) { return r.Rest(m.Context(), lease, rest) })
}

func (m *model) decide() {
	m.unique++
	account, run := m.pendingRun()
	d := store.Decision{
		Account: account, Run: run, ResumeID: fmt.Sprint(m.unique, "\x00"), Actor: pick(m, "actor", "ann", "bob\xff"),
		Body: pick(m, "body", "this", "this", "that"), Via: "via\x00",
	}
	if len(m.resumes) > 0 && !m.often() {
		seen := pick(m, "again", m.resumes...)
		d.Account, d.Actor, d.ResumeID = seen.account, seen.actor, seen.id
	}
	for range rapid.IntRange(1, 3).Draw(m.T, "answers") {
		d.Answers = append(d.Answers, m.answer(d))
	}
	known := func(r *seenResume) bool { return r.account == d.Account && r.actor == d.Actor && r.id == d.ResumeID }
	if !slices.ContainsFunc(m.resumes, known) {
		m.resumes = append(m.resumes, &seenResume{account: d.Account, actor: d.Actor, id: d.ResumeID})
	}
	both(m, "Decide", func(r store.Runs) (store.Receipt, error) {
		receipt, err := r.Decide(m.Context(), d)
		receipt.Outcome = nil // compareResume looks at it
		return receipt, err
	})
}

func (m *model) answer(d store.Decision) store.Answer {
	a := store.Answer{
		Interrupt: m.asked(d.Account, d.Run, func(i store.Interrupt) bool { return i.State == store.Pending }).ID,
		Verdict:   pick(m, "verdict", store.Approve, store.Approve, store.Approve, store.Reject, store.Answered), Data: m.bytes(), Shown: "shown",
	}
	if !m.often() {
		a.Shown = pick(m, "shown", "", "something else")
	}
	if a.Verdict == store.Approve {
		a.Final = pick(m, "final", "action", "edited\x00") // never without, see TestDecide_AnApproveSaysWhat
	}
	return a
}

func (m *model) begin() {
	lease := m.lease()
	i := m.asked(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.Verdict == store.Approve })
	effect := store.NewEffect{Interrupt: i.ID, Number: pick(m, "effect", 1, 2), Digest: i.Final, Key: "key\x00"}
	if !m.often() {
		effect.Digest = pick(m, "digest", "", "action", "edited\x00")
	}
	type result struct {
		Line  store.Effect
		Begun bool
	}
	if len(m.effects) > 0 && !m.often() {
		effect = pick(m, "somebody's", m.effects...).NewEffect
	}
	begun, _ := both(m, "Begin", func(r store.Runs) (b result, err error) {
		b.Line, b.Begun, err = r.Begin(m.Context(), lease, effect)
		return b, err
	})
	if begun.Begun {
		m.effects = append(m.effects, begun.Line)
	}
}

func (m *model) end() {
	line := store.Effect{Account: m.account(), NewEffect: store.NewEffect{Interrupt: "unknown", Number: 1}}
	if len(m.effects) > 0 && m.often() {
		line = pick(m, "line", m.effects...)
	}
	end := store.EffectEnd{
		Account: line.Account, Interrupt: line.Interrupt, Number: line.Number,
		State: pick(m, "end", store.Succeeded, store.Faulted, store.Indeterminate), Receipt: m.bytes(), Error: pick(m, "error", "", "e\xff"),
	}
	bothDo(m, "End", func(r store.Runs) error { return r.End(m.Context(), end) })
}

func (m *model) expire() {
	limit := rapid.IntRange(0, 3).Draw(m.T, "limit")
	both(m, "Expire", func(r store.Runs) ([]store.Interrupt, error) { return r.Expire(m.Context(), limit) })
}

func (m *model) cancel() {
	account, key, as := m.account(), m.stateKey(), pick(m, "as", store.Cancelled, store.Superseded)
	both(m, "Cancel", func(r store.Runs) (store.Run, error) { return r.Cancel(m.Context(), account, key, as) })
}

func (m *model) renew() {
	lease, duration := m.lease(), m.duration()
	bothDo(m, "Renew", func(r store.Runs) error { return r.Renew(m.Context(), lease, duration) })
}

func (m *model) setRef() {
	lease, ref := m.lease(), m.bytes()
	bothDo(m, "SetRef", func(r store.Runs) error { return r.SetRef(m.Context(), lease, ref) })
}

func (m *model) release() {
	lease, delay := m.lease(), time.Duration(pick(m, "delay", 0, 25, 75))*time.Microsecond
	bothDo(m, "Release", func(r store.Runs) error { return r.Release(m.Context(), lease, delay) })
}

func (m *model) save() {
	lease, base := m.lease(), int64(pick(m, "base", 0, 0, 1, 2))
	both(m, "Save", func(r store.Runs) (int64, error) {
		return r.Fenced(lease).Save(m.Context(), store.Key{Account: lease.Account, Run: lease.Run}, base, putRun("x"))
	})
}
