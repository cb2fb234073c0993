package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/store"
)

func (m *storePair) step() {
	*m.now = m.now.Add(pick(m, "time passes", time.Microsecond, time.Microsecond, 30*time.Microsecond, 2*time.Hour))
	if moments := m.futureTimes(); len(moments) > 0 && !m.mostly() {
		*m.now = pick(m, "moment", moments...)
	}
	owner := []func(){m.beginEffect, m.endExecution, m.decide, m.beginEffect, m.endEffect, m.endExecution, m.save, m.renew, m.release, m.setProviderRef, m.commitWrites}
	others := []func(){m.decide, m.claim, m.endEffect, m.create, m.expire, m.cancel, m.retry, m.deleteRun, m.list, m.finishedRuns, m.events, m.reencrypt, m.putIfAbsent, m.commitWrites, m.dueDocuments, m.documents}
	steps := append(slices.Clone(owner), others...)
	if m.mostly() { // usually a valid action
		steps = others
		if len(m.validLeases()) > 0 {
			steps = owner
		}
	}
	steps[rapid.IntRange(0, len(steps)-1).Draw(m.T, "step")]()
}

func (m *storePair) create() {
	account := m.account()
	n := store.NewRun{
		Account: account, ID: m.run(account), StateKey: m.stateKey(), Provider: "p\x00", Graph: "g\xff", ProviderRef: m.bytes(), Input: m.bytes(),
		InputDigest: "d", Owner: "creator", Lease: m.duration(),
	}
	n.Writes = m.writes(account, n.ID)
	// or the caller has not read it
	if last, err := m.memory.Get(m.Context(), account, n.StateKey); err == nil && m.mostly() {
		n.AfterGeneration = last.Generation
	}
	lease, err := compareBoth(m, "Create", func(s store.Store) (store.Lease, error) { return s.Create(m.Context(), n) })
	if err == nil {
		m.leases = append(m.leases, lease)
		m.made[store.Key{Account: account, Run: n.ID}] = n.StateKey
	}
}

func (m *storePair) claim() {
	c := store.Claim{Owner: pick(m, "owner", "", "w\x00"), Lease: m.duration()}
	if pick(m, "one run", false, false, true) {
		c.Account = m.account()
		c.Run = m.run(c.Account)
	}
	work, _ := compareBoth(m, "Claim", func(s store.Store) (*store.ClaimedRun, error) { return s.Claim(m.Context(), c) })
	if work != nil {
		m.leases = append(m.leases, work.Lease)
	}
}

func (m *storePair) endExecution() {
	lease := m.lease()
	end := store.ExecutionEnd{
		Status:  pick(m, "status", store.StatusWaiting, store.StatusWaiting, store.StatusWaiting, store.StatusWaiting, store.StatusWaiting, store.StatusCompleted, store.StatusFailed),
		Outcome: m.bytes(),
	}
	for range rapid.IntRange(0, 4).Draw(m.T, "open") {
		n := store.NewInterrupt{
			ID: m.interrupt(lease.Run), Address: "at\x00", Kind: "kind\xff", Data: m.bytes(), AnswerSchema: m.bytes(), ShownDigest: "shown",
			ActionDigest: pick(m, "action", "", "action"),
		}
		if pick(m, "deadline", false, false, true) {
			n.Timeout = m.duration()
		}
		end.Open = append(end.Open, n)
	}
	for range rapid.IntRange(0, 2).Draw(m.T, "applied") {
		decided := m.interruptWhere(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.State == store.InterruptDecided && !i.Applied })
		end.Applied = append(end.Applied, decided.ID)
	}
	var requests []string
	for range rapid.IntRange(0, 2).Draw(m.T, "requests") {
		requests = append(requests, m.interruptWhere(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.State == store.InterruptPending }).ID)
	}
	if pick(m, "state", false, true) {
		end.Checkpoint = &store.CheckpointSave{BaseVersion: int64(pick(m, "base", 0, 0, 1, 2)), Delta: parts{"x": "z"}.delta()}
		if pick(m, "drop", false, false, true) {
			end.Checkpoint.Delta, end.Checkpoint.Drop = store.Delta{}, true
		}
	}
	end.Writes = m.writes(lease.Account, lease.Run, requests...)
	compareBoth(m, "EndExecution", func(s store.Store) (store.Status, error) { return s.EndExecution(m.Context(), lease, end) })
}

func (m *storePair) decide() {
	m.unique++
	account, run := m.pendingRun()
	d := store.Decision{
		Account: account, Run: run, ResumeID: fmt.Sprint(m.name, "-", m.unique, "\x00"), Actor: pick(m, "actor", "ann", "bob\xff"),
		BodyDigest: pick(m, "body", "this", "this", "that"), Via: "via\x00",
	}
	if len(m.resumes) > 0 && !m.mostly() {
		seen := pick(m, "again", m.resumes...)
		d.Account, d.Actor, d.ResumeID = seen.account, seen.actor, seen.id
	}
	for range rapid.IntRange(1, 3).Draw(m.T, "answers") {
		d.Answers = append(d.Answers, m.answer(d))
	}
	if seen := (resumeID{account: d.Account, actor: d.Actor, id: d.ResumeID}); !slices.Contains(m.resumes, seen) {
		m.resumes = append(m.resumes, seen)
	}
	d.Writes = m.writes(d.Account, d.Run, m.decidedRequests(d)...)
	if pick(m, "claim", false, true) {
		d.Claim = &store.Claim{Owner: "decider\x00", Lease: m.duration()}
	}
	receipt, _ := compareBoth(m, "Decide", func(s store.Store) (store.DecisionReceipt, error) { return s.Decide(m.Context(), d) })
	if receipt.Claimed != nil {
		m.leases = append(m.leases, receipt.Claimed.Lease)
	}
}

func (m *storePair) answer(d store.Decision) store.Answer {
	a := store.Answer{
		Interrupt: m.interruptWhere(d.Account, d.Run, func(i store.Interrupt) bool { return i.State == store.InterruptPending }).ID,
		Verdict:   pick(m, "verdict", store.VerdictApprove, store.VerdictApprove, store.VerdictApprove, store.VerdictReject, store.VerdictAnswer), Data: m.bytes(), ShownDigest: "shown",
	}
	if !m.mostly() {
		a.ShownDigest = pick(m, "shown", "", "something else")
	}
	if a.Verdict == store.VerdictApprove {
		// never empty, which is not defined by the port
		a.ApprovedDigest = pick(m, "final", "action", "edited\x00")
	}
	return a
}

func (m *storePair) beginEffect() {
	lease := m.lease()
	i := m.interruptWhere(lease.Account, lease.Run, func(i store.Interrupt) bool { return i.Verdict == store.VerdictApprove })
	effect := store.NewEffect{Interrupt: i.ID, Attempt: pick(m, "effect", 1, 2), ActionDigest: i.ApprovedDigest, IdempotencyKey: "key\x00"}
	if !m.mostly() {
		effect.ActionDigest = pick(m, "digest", "", "action", "edited\x00")
	}
	type result struct {
		Line  store.Effect
		Begun bool
	}
	if len(m.effects) > 0 && !m.mostly() {
		effect = pick(m, "somebody's", m.effects...).NewEffect
	}
	if pick(m, "allowed", false, false, true) {
		effect.Ruling = &store.PolicyRuling{Address: "at\x00", Kind: "kind\xff", Data: m.bytes(), By: pick(m, "policy", "", "p\x00")}
		if m.mostly() {
			effect.Interrupt, effect.ActionDigest = m.interrupt(lease.Run), "action"
		}
	}
	effect.Writes = m.writes(lease.Account, lease.Run)
	begun, _ := compareBoth(m, "BeginEffect", func(s store.Store) (b result, err error) {
		b.Line, b.Begun, err = s.BeginEffect(m.Context(), lease, effect)
		return b, err
	})
	if begun.Begun {
		m.effects = append(m.effects, begun.Line)
	}
}

func (m *storePair) endEffect() {
	line := store.Effect{Account: m.account(), NewEffect: store.NewEffect{Interrupt: "unknown", Attempt: 1}}
	if len(m.effects) > 0 && m.mostly() {
		line = pick(m, "line", m.effects...)
	}
	end := store.EffectEnd{
		Account: line.Account, Interrupt: line.Interrupt, Attempt: line.Attempt,
		State: pick(m, "end", store.EffectSucceeded, store.EffectFailed), Receipt: m.bytes(), Error: pick(m, "error", "", "e\xff"),
	}
	end.Writes = m.writes(line.Account, line.Run)
	compareErrors(m, "EndEffect", func(s store.Store) error { return s.EndEffect(m.Context(), end) })
}

func (m *storePair) expire() {
	limit, writes := rapid.IntRange(0, 3).Draw(m.T, "limit"), m.expiryWrites()
	var until time.Time
	if pick(m, "until", false, true) {
		until = m.now.Add(time.Duration(pick(m, "by", -50, -1, 0, 50)) * time.Microsecond)
	}
	compareBoth(m, "Expire", func(s store.Store) ([]store.Interrupt, error) { return s.Expire(m.Context(), until, limit, writes) })
}

func (m *storePair) cancel() {
	account, key, as := m.account(), m.stateKey(), pick(m, "as", store.StatusCancelled, store.StatusSuperseded)
	run, err := m.memory.Get(m.Context(), account, key)
	if err != nil {
		run.ID = m.run(account)
	}
	writes := m.writes(account, run.ID, m.interrupt(run.ID))
	waits := pick(m, "waits", nil, []string{}, []string{m.interrupt(run.ID)}, m.pending(account, run.ID))
	compareBoth(m, "Cancel", func(s store.Store) (store.Run, error) {
		return s.Cancel(m.Context(), account, run.ID, as, waits, writes)
	})
}

// pending returns the pending interrupts of a run in another order.
func (m *storePair) pending(account, run string) []string {
	asked, err := m.memory.Interrupts(m.Context(), account, run)
	if err != nil {
		m.Fatal(err)
	}
	ids := []string{}
	for _, i := range slices.Backward(asked) {
		if i.State == store.InterruptPending {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func (m *storePair) renew() {
	lease, duration := m.lease(), m.duration()
	compareErrors(m, "Renew", func(s store.Store) error { return s.Renew(m.Context(), lease, duration) })
}

func (m *storePair) setProviderRef() {
	lease, ref := m.lease(), m.bytes()
	compareErrors(m, "SetProviderRef", func(s store.Store) error { return s.SetProviderRef(m.Context(), lease, ref) })
}

func (m *storePair) release() {
	lease := m.lease()
	release := store.Release{Delay: time.Duration(pick(m, "delay", 0, 25, 75)) * time.Microsecond, Park: pick(m, "park", false, false, true)}
	compareErrors(m, "Release", func(s store.Store) error { return s.Release(m.Context(), lease, release) })
}

func (m *storePair) save() {
	lease, base := m.lease(), int64(pick(m, "base", 0, 0, 1, 2))
	compareBoth(m, "Save", func(s store.Store) (int64, error) {
		return s.Fenced(lease).Save(m.Context(), store.Key{Account: lease.Account, Run: lease.Run}, base, parts{"x": "y"}.delta())
	})
}

func (m *storePair) retry() {
	account := m.account()
	run := m.run(account)
	compareBoth(m, "Retry", func(s store.Store) (store.Run, error) { return s.Retry(m.Context(), account, run, store.Writes{}) })
}

func (m *storePair) deleteRun() {
	account := m.account()
	run := m.run(account)
	compareErrors(m, "DeleteRun", func(s store.Store) error { return s.DeleteRun(m.Context(), account, run, store.Writes{}) })
}

func (m *storePair) list() {
	account, filter := m.account(), store.RunFilter{Limit: m.number(), Provider: pick(m, "provider", "", "p\x00", "q"), Graph: pick(m, "graph", "", "g\xff")}
	for range rapid.IntRange(0, 3).Draw(m.T, "statuses") {
		filter.Status = append(filter.Status, pick(m, "status", store.StatusReady, store.StatusRunning, store.StatusWaiting, store.StatusParked, store.StatusCancelled, store.StatusCompleted))
	}
	for {
		page, _ := compareBoth(m, "List", func(s store.Store) ([]store.Run, error) { return s.List(m.Context(), account, filter) })
		if len(page) == 0 {
			return
		}
		last := page[len(page)-1]
		filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
	}
}

func (m *storePair) finishedRuns() {
	before, limit := m.now.Add(-time.Duration(pick(m, "before", -1, 0, 1, 50))*time.Microsecond), m.number()
	from := pick(m, "from", time.Time{}, before.Add(-time.Microsecond), before.Add(-50*time.Microsecond))
	compareBoth(m, "FinishedRuns", func(s store.Store) ([]store.Run, error) { return s.FinishedRuns(m.Context(), from, before, limit) })
}

func (m *storePair) events() {
	account, after, limit := m.account(), int64(rapid.IntRange(-1, 6).Draw(m.T, "after")), m.number()
	run := m.run(account)
	compareBoth(m, "Events", func(s store.Store) ([]store.Event, error) { return s.Events(m.Context(), account, run, after, limit) })
}

// reencrypt passes over all values and replaces half of them.
func (m *storePair) reencrypt() {
	limit := rapid.IntRange(1, 9).Draw(m.T, "limit")
	compareBoth(m, "Reencrypt", func(s store.Store) (seen []string, err error) {
		reseal := func(sealed store.SealedValue) ([]byte, error) {
			if sealed.Field == store.SealedNamedValue && !strings.HasPrefix(sealed.ID, m.name) {
				return nil, nil // of another history
			}
			if sealed.Field == store.SealedDocument && strings.HasPrefix(sealed.Part, "grant ") && sealed.Part != string(m.grants()) {
				return nil, nil
			}
			seen = append(seen, fmt.Sprintf("%q", sealed))
			if len(sealed.Data)%2 == 0 {
				return nil, nil
			}
			return append([]byte("+"), sealed.Data...), nil
		}
		for after := ""; ; {
			if after, err = s.Reencrypt(m.Context(), after, limit, reseal); after == "" || err != nil {
				slices.Sort(seen)
				// an outcome may be stored with the run only, or also with its resumes
				return slices.Compact(seen), err
			}
		}
	})
}

func (m *storePair) putIfAbsent() {
	name, value := fmt.Sprint(m.name, "\x00", m.number()), pick(m, "value", "a", "b\x00")
	compareBoth(m, "PutIfAbsent", func(s store.Store) ([]byte, error) { return s.PutIfAbsent(m.Context(), name, []byte(value)) })
}
