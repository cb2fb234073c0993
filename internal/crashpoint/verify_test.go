package crashpoint

import (
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

// onEffect checks an executed call at once: there must be an approval of exactly this action.
func (c *people) onEffect(d simtest.Done[effectCall]) {
	if !slices.ContainsFunc(c.ops, func(o *op) bool { return o.verb == fermata.VerbApprove && o.paid == d.Action.payment }) {
		c.sim.t.Errorf("I4: %v was executed without an approval", d)
	}
}

// verify compares the replies, the executed calls and the final state of the store. It uses only
// the people and the targets, and no knowledge of the store.
func (s *sim) verify() {
	s.answersAgree()
	lines := make(map[string]store.Effect)
	histories, err := simtest.Histories(s.t.Context(), s.store, account)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range histories {
		for _, i := range h.Interrupts {
			s.verdict(i)
		}
		for _, v := range simtest.CheckHistory(h, s.outside.Has) {
			s.t.Error(v)
		}
		for _, e := range h.Effects {
			lines[e.IdempotencyKey] = e
		}
		s.outcome(h)
	}
	s.deedsAreApproved(lines)
	s.count()
	if err := simtest.CheckLog(s.t.Context(), s.store, account); err != nil && len(histories) > 0 {
		s.t.Error(err)
	}
	s.reconcile()
}

// reconcile runs the reconciliation. It takes as long as the rest of a simulation, so it is not run
// for every seed.
func (s *sim) reconcile() {
	if s.rng.IntN(4) != 0 {
		return
	}
	found, err := s.reader().Reconcile(s.t.Context(), account)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range found {
		if f.Severity == reconcile.SeverityPage {
			s.t.Errorf("I12: reconciliation: %+v", f)
		}
	}
}

// answersAgree checks that the same submission under the same id gets the same reply, and that of
// different submissions under one id only one is accepted.
func (s *sim) answersAgree() {
	taker := make(map[string]*op)
	for _, o := range s.ops {
		if o.request.ResumeID == "" {
			continue // the progress of a run changes
		}
		if slices.Contains(o.told, taken) {
			outcome, err := s.reader().Run(s.t.Context(), o.request)
			o.recordReply(s.t, outcome, err)
		}
		for _, all := range [][]string{o.told, o.heard} {
			if len(slices.Compact(slices.Clone(all))) > 1 {
				s.t.Errorf("I3: %s of %s got %q", o.request.ResumeID, o.request.Actor, all)
			}
		}
		if len(o.told) == 0 || o.told[0] != taken {
			continue
		}
		name := o.request.Actor + " " + o.request.ResumeID
		if other := taker[name]; other != nil && other.interrupt != o.interrupt {
			s.t.Errorf("I3: %s was accepted for %s and for %s", name, other.interrupt, o.interrupt)
		}
		taker[name] = o
	}
}

// verdict checks that the recorded decision of an interrupt is one that a person made in time, or
// the expiry, and that no other person was told that they decided it.
func (s *sim) verdict(i store.Interrupt) {
	var by *op
	for _, o := range s.ops {
		if o.interrupt != i.ID {
			continue
		}
		mine := i.Source == store.SourcePerson && o.request.Actor == i.DecidedBy && o.request.ResumeID == i.ResumeID
		if mine && (len(o.told) == 0 || o.told[0] != reused) {
			by = o
		}
		if len(o.told) > 0 && o.told[0] == taken && !mine {
			s.t.Errorf("I1: %s of %s was accepted for %s, which is %s by %s with %s", o.request.ResumeID, o.request.Actor, i.ID, i.Verdict, i.DecidedBy, i.ResumeID)
		}
	}
	switch {
	case i.State == store.InterruptWithdrawn:
	case i.State == store.InterruptPending:
		s.t.Errorf("I17: %s is open, but the run has ended", i.ID)
	case i.Source == store.SourceClock:
		if i.Verdict != store.VerdictExpire || i.DecidedAt.Before(i.Deadline) {
			s.t.Errorf("I10, I11: the clock decided %s for %s at %s; the deadline was %s", i.Verdict, i.ID, i.DecidedAt, i.Deadline)
		}
	case by == nil:
		s.t.Errorf("I5: %s is %s by %q with %q, which no one submitted", i.ID, i.Verdict, i.DecidedBy, i.ResumeID)
	case !i.DecidedAt.Before(i.Deadline):
		s.t.Errorf("I10: %s was decided at %s; the deadline was %s", i.ID, i.DecidedAt, i.Deadline)
	case by.verb != "" && (by.verb == fermata.VerbApprove) != (i.Verdict == store.VerdictApprove):
		s.t.Errorf("I1: %s was submitted for %s, but %s is recorded", by.verb, i.ID, i.Verdict)
	}
}

// deedsAreApproved checks that executed calls are in the ledger, for an approval of exactly that
// action, once.
func (s *sim) deedsAreApproved(lines map[string]store.Effect) {
	once := make(map[string]bool)
	for _, d := range s.outside.Log() {
		if once[d.Key] {
			s.t.Errorf("I4: %v was executed twice", d)
		}
		once[d.Key] = true
		line, known := lines[d.Key]
		if !known {
			s.t.Errorf("I4: %v was executed, but has no ledger entry", d)
			continue
		}
		i, err := s.store.InboxItem(s.t.Context(), account, line.Interrupt)
		if err != nil {
			s.t.Fatal(err)
		}
		if !slices.ContainsFunc(s.ops, func(o *op) bool {
			return o.interrupt == i.ID && o.request.ResumeID == i.ResumeID && o.request.Actor == i.DecidedBy && o.verb == fermata.VerbApprove && o.paid == d.Action.payment
		}) {
			s.t.Errorf("I6: %v was executed, but %s (%s by %s) does not approve it", d, i.ID, i.Verdict, i.DecidedBy)
		}
	}
}

// outcome checks that the output of a completed run matches the decisions and effects.
func (s *sim) outcome(h store.History) {
	switch h.Run.Status {
	case store.StatusCompleted:
	case store.StatusCancelled, store.StatusSuperseded:
		return
	case store.StatusFailed:
		if !slices.ContainsFunc(h.Interrupts, func(i store.Interrupt) bool {
			return i.Kind == fermata.EffectInDoubt.Name() && i.Verdict == store.VerdictExpire
		}) {
			s.t.Errorf("I2: a run failed without a known reason: %+v", h.Interrupts)
		}
		return
	default:
		s.t.Errorf("I17: a run is %s", h.Run.Status)
		return
	}
	view, err := s.reader().GetRequest(s.t.Context(), account, h.Interrupts[0].ID)
	if err != nil {
		s.t.Fatal(err)
	}
	var asked fermata.ApprovalRequest
	if err := json.Unmarshal(view.Data, &asked); err != nil || asked.Action != pay {
		s.t.Fatalf("I5: the first interrupt is about %q, %v", asked.Action, err)
	}
	for _, i := range h.Interrupts {
		if i.Verdict != store.VerdictApprove {
			continue
		}
		done, ended := 0, false
		for _, e := range h.Effects {
			if _, happened := s.outside.Receipt(e.IdempotencyKey); happened && e.Interrupt == i.ID {
				done = 1
			}
			ended = ended || e.Interrupt == i.ID && e.State == store.EffectSucceeded
		}
		if !ended && !slices.ContainsFunc(h.Interrupts, func(i store.Interrupt) bool { return i.Kind == fermata.EffectInDoubt.Name() && i.Applied }) {
			s.t.Errorf("I4: the run continued after %s, but the ledger does not record its success: %+v", i.ID, h.Effects)
		}
		if done == 0 {
			s.t.Errorf("I2: %s was approved and the run is completed, but it was not executed", i.ID)
		}
	}
}

// count counts events, to make sure that the simulation does something.
func (s *sim) count() {
	_, queries := s.outside.Counts()
	s.tally["deeds"] += len(s.outside.Log())
	s.tally["queries a target"] += queries
	s.tally["words"] += len(s.ops)
	for _, run := range s.runs() {
		s.tally["runs "+string(run.Status)]++
		s.tally["owners"] += int(run.Fence)
	}
	_, all := s.asked()
	for _, i := range all {
		s.tally["questions "+string(i.Verdict)]++
		if i.Kind == fermata.EffectInDoubt.Name() {
			s.tally["doubts"]++
		}
	}
	for _, o := range s.ops {
		for _, told := range o.told {
			s.tally["told "+told]++
		}
	}
}
