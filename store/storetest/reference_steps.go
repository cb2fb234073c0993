package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/store"
)

func (m *twins) step() {
	*m.now = m.now.Add(pick(m, "time passes", time.Microsecond, time.Microsecond, 30*time.Microsecond, 2*time.Hour))
	if moments := m.moments(); len(moments) > 0 && !m.often() {
		*m.now = pick(m, "moment", moments...)
	}
	owner := []func(){m.begin, m.rest, m.decide, m.begin, m.end, m.rest, m.save, m.renew, m.release, m.setRef, m.amend}
	others := []func(){m.decide, m.claim, m.end, m.create, m.expire, m.cancel, m.retry, m.forget, m.list, m.finished, m.events, m.reseal, m.once, m.amend, m.due, m.papers}
	steps := append(slices.Clone(owner), others...)
	if m.often() { // mostly somebody does what they can do
		steps = others
		if len(m.good()) > 0 {
			steps = owner
		}
	}
	steps[rapid.IntRange(0, len(steps)-1).Draw(m.T, "step")]()
}

func (m *twins) create() {
	account := m.account()
	n := store.NewRun{
		Account: account, ID: m.run(account), StateKey: m.stateKey(), Provider: "p\x00", Graph: "g\xff", Ref: m.bytes(), Input: m.bytes(),
		InputDigest: "d", Owner: "creator", Lease: m.duration(),
	}
	n.Beside = m.beside(account, n.ID)
	if last, err := m.memory.Get(m.Context(), account, n.StateKey); err == nil && m.often() { // or it has not looked
		n.After = last.Generation
	}
	lease, err := both(m, "Create", func(s store.Store) (store.Lease, error) { return s.Create(m.Context(), n) })
	if err == nil {
		m.leases = append(m.leases, lease)
		m.made[store.Key{Account: account, Run: n.ID}] = n.StateKey
	}
}

func (m *twins) claim() {
	c := store.Claim{Owner: pick(m, "owner", "", "w\x00"), Lease: m.duration()}
	if pick(m, "one run", false, false, true) {
		c.Account = m.account()
		c.Run = m.run(c.Account)
	}
	work, _ := both(m, "Claim", func(s store.Store) (*store.Work, error) { return s.Claim(m.Context(), c) })
	if work != nil {
		m.leases = append(m.leases, work.Lease)
	}
}

func (m *twins) rest() {
	lease := m.lease()
	rest := store.Rest{
		Status:  pick(m, "status", store.Waiting, store.Waiting, store.Waiting, store.Waiting, store.Waiting, store.Completed, store.Failed),
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
	var requests []string
	for range rapid.IntRange(0, 2).Draw(m.T, "requests") {
		requests = append(requests, m.asked(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.State == store.Pending }).ID)
	}
	if pick(m, "state", false, true) {
		rest.State = &store.Save{Base: int64(pick(m, "base", 0, 0, 1, 2)), Delta: parts{"x": "z"}.delta()}
		if pick(m, "drop", false, false, true) {
			rest.State.Delta, rest.State.Drop = store.Delta{}, true
		}
	}
	rest.Beside = m.beside(lease.Account, lease.Run, requests...)
	both(m, "Rest", func(s store.Store) (store.Status, error) { return s.Rest(m.Context(), lease, rest) })
}

func (m *twins) decide() {
	m.unique++
	account, run := m.pendingRun()
	d := store.Decision{
		Account: account, Run: run, ResumeID: fmt.Sprint(m.name, "-", m.unique, "\x00"), Actor: pick(m, "actor", "ann", "bob\xff"),
		Body: pick(m, "body", "this", "this", "that"), Via: "via\x00",
	}
	if len(m.resumes) > 0 && !m.often() {
		seen := pick(m, "again", m.resumes...)
		d.Account, d.Actor, d.ResumeID = seen.account, seen.actor, seen.id
	}
	for range rapid.IntRange(1, 3).Draw(m.T, "answers") {
		d.Answers = append(d.Answers, m.answer(d))
	}
	if seen := (seenResume{account: d.Account, actor: d.Actor, id: d.ResumeID}); !slices.Contains(m.resumes, seen) {
		m.resumes = append(m.resumes, seen)
	}
	d.Beside = m.beside(d.Account, d.Run, m.brought(d)...)
	if pick(m, "claim", false, true) {
		d.Claim = &store.Claim{Owner: "decider\x00", Lease: m.duration()}
	}
	receipt, _ := both(m, "Decide", func(s store.Store) (store.Receipt, error) { return s.Decide(m.Context(), d) })
	if receipt.Work != nil {
		m.leases = append(m.leases, receipt.Work.Lease)
	}
}

func (m *twins) answer(d store.Decision) store.Answer {
	a := store.Answer{
		Interrupt: m.asked(d.Account, d.Run, func(i store.Interrupt) bool { return i.State == store.Pending }).ID,
		Verdict:   pick(m, "verdict", store.Approve, store.Approve, store.Approve, store.Reject, store.Answered), Data: m.bytes(), Shown: "shown",
	}
	if !m.often() {
		a.Shown = pick(m, "shown", "", "something else")
	}
	if a.Verdict == store.Approve {
		a.Final = pick(m, "final", "action", "edited\x00") // never without, what a store makes of that is its own
	}
	return a
}

func (m *twins) begin() {
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
	if pick(m, "allowed", false, false, true) {
		effect.Allowed = &store.Allowed{Address: "at\x00", Kind: "kind\xff", Data: m.bytes(), By: pick(m, "policy", "", "p\x00")}
		if m.often() {
			effect.Interrupt, effect.Digest = m.interrupt(lease.Run), "action"
		}
	}
	effect.Beside = m.beside(lease.Account, lease.Run)
	begun, _ := both(m, "Begin", func(s store.Store) (b result, err error) {
		b.Line, b.Begun, err = s.Begin(m.Context(), lease, effect)
		return b, err
	})
	if begun.Begun {
		m.effects = append(m.effects, begun.Line)
	}
}

func (m *twins) end() {
	line := store.Effect{Account: m.account(), NewEffect: store.NewEffect{Interrupt: "unknown", Number: 1}}
	if len(m.effects) > 0 && m.often() {
		line = pick(m, "line", m.effects...)
	}
	end := store.EffectEnd{
		Account: line.Account, Interrupt: line.Interrupt, Number: line.Number,
		State: pick(m, "end", store.Succeeded, store.Faulted), Receipt: m.bytes(), Error: pick(m, "error", "", "e\xff"),
	}
	end.Beside = m.beside(line.Account, line.Run)
	bothDo(m, "End", func(s store.Store) error { return s.End(m.Context(), end) })
}

func (m *twins) expire() {
	limit, beside := rapid.IntRange(0, 3).Draw(m.T, "limit"), m.expiring()
	var until time.Time
	if pick(m, "until", false, true) {
		until = m.now.Add(time.Duration(pick(m, "by", -50, -1, 0, 50)) * time.Microsecond)
	}
	both(m, "Expire", func(s store.Store) ([]store.Interrupt, error) { return s.Expire(m.Context(), until, limit, beside) })
}

func (m *twins) cancel() {
	account, key, as := m.account(), m.stateKey(), pick(m, "as", store.Cancelled, store.Superseded)
	run, err := m.memory.Get(m.Context(), account, key)
	if err != nil {
		run.ID = m.run(account)
	}
	beside := m.beside(account, run.ID, m.interrupt(run.ID))
	waits := pick(m, "waits", nil, []string{}, []string{m.interrupt(run.ID)}, m.pending(account, run.ID))
	both(m, "Cancel", func(s store.Store) (store.Run, error) {
		return s.Cancel(m.Context(), account, run.ID, as, waits, beside)
	})
}

// pending are the interrupts that a run waits for, in another order than it asked.
func (m *twins) pending(account, run string) []string {
	asked, err := m.memory.Interrupts(m.Context(), account, run)
	if err != nil {
		m.Fatal(err)
	}
	ids := []string{}
	for _, i := range slices.Backward(asked) {
		if i.State == store.Pending {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func (m *twins) renew() {
	lease, duration := m.lease(), m.duration()
	bothDo(m, "Renew", func(s store.Store) error { return s.Renew(m.Context(), lease, duration) })
}

func (m *twins) setRef() {
	lease, ref := m.lease(), m.bytes()
	bothDo(m, "SetRef", func(s store.Store) error { return s.SetRef(m.Context(), lease, ref) })
}

func (m *twins) release() {
	lease := m.lease()
	release := store.Release{Delay: time.Duration(pick(m, "delay", 0, 25, 75)) * time.Microsecond, Park: pick(m, "park", false, false, true)}
	bothDo(m, "Release", func(s store.Store) error { return s.Release(m.Context(), lease, release) })
}

func (m *twins) save() {
	lease, base := m.lease(), int64(pick(m, "base", 0, 0, 1, 2))
	both(m, "Save", func(s store.Store) (int64, error) {
		return s.Fenced(lease).Save(m.Context(), store.Key{Account: lease.Account, Run: lease.Run}, base, parts{"x": "y"}.delta())
	})
}

func (m *twins) retry() {
	account := m.account()
	run := m.run(account)
	both(m, "Retry", func(s store.Store) (store.Run, error) { return s.Retry(m.Context(), account, run, store.Beside{}) })
}

func (m *twins) forget() {
	account := m.account()
	run := m.run(account)
	bothDo(m, "Forget", func(s store.Store) error { return s.Forget(m.Context(), account, run, store.Beside{}) })
}

func (m *twins) list() {
	account, filter := m.account(), store.Filter{Limit: m.number(), Provider: pick(m, "provider", "", "p\x00", "q"), Graph: pick(m, "graph", "", "g\xff")}
	for range rapid.IntRange(0, 3).Draw(m.T, "statuses") {
		filter.Status = append(filter.Status, pick(m, "status", store.Ready, store.Running, store.Waiting, store.Parked, store.Cancelled, store.Completed))
	}
	for {
		page, _ := both(m, "List", func(s store.Store) ([]store.Run, error) { return s.List(m.Context(), account, filter) })
		if len(page) == 0 {
			return
		}
		last := page[len(page)-1]
		filter.Before = store.RunPlace{Created: last.Created, ID: last.ID}
	}
}

func (m *twins) finished() {
	before, limit := m.now.Add(-time.Duration(pick(m, "before", -1, 0, 1, 50))*time.Microsecond), m.number()
	from := pick(m, "from", time.Time{}, before.Add(-time.Microsecond), before.Add(-50*time.Microsecond))
	both(m, "Finished", func(s store.Store) ([]store.Run, error) { return s.Finished(m.Context(), from, before, limit) })
}

func (m *twins) events() {
	account, after, limit := m.account(), int64(rapid.IntRange(-1, 6).Draw(m.T, "after")), m.number()
	run := m.run(account)
	both(m, "Events", func(s store.Store) ([]store.Event, error) { return s.Events(m.Context(), account, run, after, limit) })
}

// reseal goes over everything, and keeps half of it.
func (m *twins) reseal() {
	limit := rapid.IntRange(1, 9).Draw(m.T, "limit")
	both(m, "Reseal", func(s store.Store) (seen []string, err error) {
		reseal := func(sealed store.Sealed) ([]byte, error) {
			if sealed.What == store.SealedOnce && !strings.HasPrefix(sealed.ID, m.name) {
				return nil, nil // of another history
			}
			if sealed.What == store.SealedPaper && strings.HasPrefix(sealed.Part, "grant ") && sealed.Part != string(m.grants()) {
				return nil, nil
			}
			seen = append(seen, fmt.Sprintf("%q", sealed))
			if len(sealed.Data)%2 == 0 {
				return nil, nil
			}
			return append([]byte("+"), sealed.Data...), nil
		}
		for after := ""; ; {
			if after, err = s.Reseal(m.Context(), after, limit, reseal); after == "" || err != nil {
				slices.Sort(seen)
				return slices.Compact(seen), err // an outcome may be kept with the run alone, or also with its resumes
			}
		}
	})
}

func (m *twins) once() {
	name, value := fmt.Sprint(m.name, "\x00", m.number()), pick(m, "value", "a", "b\x00")
	both(m, "Once", func(s store.Store) ([]byte, error) { return s.Once(m.Context(), name, []byte(value)) })
}
