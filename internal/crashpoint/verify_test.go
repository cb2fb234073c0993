package crashpoint

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/store"
)

// sees looks at a deed at the moment when it is done: somebody must have said yes to exactly that.
func (c *people) onEffect(d effectCall) {
	if !slices.ContainsFunc(c.ops, func(o *op) bool { return o.verb == fermata.VerbApprove && o.paid == d.payment }) {
		c.sim.t.Errorf("I4: %v is done, and nobody said so", d)
	}
}

// verify compares what everybody was told, what was done outside and what the store knows in the end. It goes by the people and the world outside,
// and knows nothing of how the store comes to what it knows.
func (s *sim) verify() {
	s.answersAgree()
	lines := make(map[string]store.Effect)
	for _, run := range s.runs() {
		h, err := s.store.History(s.t.Context(), account, run.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, i := range h.Interrupts {
			s.verdict(i)
		}
		s.inOrder(h)
		for _, e := range h.Effects {
			lines[e.IdempotencyKey] = e
		}
		s.outcome(h)
	}
	s.deedsAreApproved(lines)
	s.count()
	if _, err := audit.Verify(s.t.Context(), audit.NewStoreLog(s.store), account, audit.VerifyOptions{}, io.Discard); err != nil && len(s.runs()) > 0 {
		s.t.Errorf("I12: the chain: %v", err)
	}
	s.reconcile()
}

// reconcile: the books agree. It takes as long as the rest of a simulation, so not every one is asked.
func (s *sim) reconcile() {
	if s.rng.IntN(4) != 0 {
		return
	}
	found, err := s.reader().Reconcile(s.t.Context(), account)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range found {
		if f.Severity == audit.SeverityPage {
			s.t.Errorf("I12: the books: %+v", f)
		}
	}
}

// answersAgree: whoever says the same under the same id is told the same, and of those who say different things under one id one is taken.
func (s *sim) answersAgree() {
	taker := make(map[string]*op)
	for _, o := range s.ops {
		if o.request.ResumeID == "" {
			continue // how far a run has come changes
		}
		if slices.Contains(o.told, taken) {
			outcome, err := s.reader().Run(s.t.Context(), o.request)
			o.recordReply(s.t, outcome, err)
		}
		for _, all := range [][]string{o.told, o.heard} {
			if len(slices.Compact(slices.Clone(all))) > 1 {
				s.t.Errorf("I3: %s of %s was told %q", o.request.ResumeID, o.request.Actor, all)
			}
		}
		if len(o.told) == 0 || o.told[0] != taken {
			continue
		}
		name := o.request.Actor + " " + o.request.ResumeID
		if other := taker[name]; other != nil && other.interrupt != o.interrupt {
			s.t.Errorf("I3: %s was taken on %s and on %s", name, other.interrupt, o.interrupt)
		}
		taker[name] = o
	}
}

// verdict: what is recorded of a question is what somebody said in time, or that nobody did; and nobody else was told that they had decided it.
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
			s.t.Errorf("I1: %s of %s was taken on %s, which is %s by %s with %s", o.request.ResumeID, o.request.Actor, i.ID, i.Verdict, i.DecidedBy, i.ResumeID)
		}
	}
	switch {
	case i.State == store.InterruptWithdrawn:
	case i.State == store.InterruptPending:
		s.t.Errorf("I17: %s is open, and the run is over", i.ID)
	case i.Source == store.SourceClock:
		if i.Verdict != store.VerdictExpire || i.DecidedAt.Before(i.Deadline) {
			s.t.Errorf("I10, I11: the clock says %s to %s at %s; the deadline was %s", i.Verdict, i.ID, i.DecidedAt, i.Deadline)
		}
	case by == nil:
		s.t.Errorf("I5: %s is %s by %q with %q, and nobody said that", i.ID, i.Verdict, i.DecidedBy, i.ResumeID)
	case !i.DecidedAt.Before(i.Deadline):
		s.t.Errorf("I10: %s was decided at %s; the deadline was %s", i.ID, i.DecidedAt, i.Deadline)
	case by.verb != "" && (by.verb == fermata.VerbApprove) != (i.Verdict == store.VerdictApprove):
		s.t.Errorf("I1: %s was said to %s, and %s is recorded", by.verb, i.ID, i.Verdict)
	}
}

// inOrder: each question is decided once, and nothing is asked or begun that something undecided stands before.
func (s *sim) inOrder(h store.History) {
	decided := make(map[string]bool)
	ended := false
	for n, e := range h.Events {
		if e.Seq != int64(n)+1 {
			s.t.Errorf("I12: event %d has the number %d", n+1, e.Seq)
		}
		switch {
		case e.Kind == store.EventDecided || e.Kind == store.EventExpired:
			if decided[e.Interrupt] {
				s.t.Errorf("I1: %s is decided twice", e.Interrupt)
			}
			decided[e.Interrupt] = true
		case e.Kind == store.EventEffectBegun && (!decided[e.Interrupt] || ended):
			s.t.Errorf("I4: an effect of %s is begun; decided %v, over %v", e.Interrupt, decided[e.Interrupt], ended)
		case e.Kind.Final():
			if ended {
				s.t.Errorf("I16: the run %s ends twice", h.Run.ID)
			}
			ended = true
		}
	}
}

// deedsAreApproved: what was done stands in the ledger, for a question that was answered with an approve of exactly that; and once.
func (s *sim) deedsAreApproved(lines map[string]store.Effect) {
	once := make(map[string]bool)
	for _, d := range s.outside.deeds {
		if once[d.key] {
			s.t.Errorf("I4: %v is done twice", d)
		}
		once[d.key] = true
		line, known := lines[d.key]
		if !known {
			s.t.Errorf("I4: %v is done, and the ledger has no line of it", d)
			continue
		}
		i, err := s.store.InboxItem(s.t.Context(), account, line.Interrupt)
		if err != nil {
			s.t.Fatal(err)
		}
		if !slices.ContainsFunc(s.ops, func(o *op) bool {
			return o.interrupt == i.ID && o.request.ResumeID == i.ResumeID && o.request.Actor == i.DecidedBy && o.verb == fermata.VerbApprove && o.paid == d.payment
		}) {
			s.t.Errorf("I6: %v is done, and %s (%s by %s) is no approve of that", d, i.ID, i.Verdict, i.DecidedBy)
		}
	}
}

// outcome: a run that is completed says what was decided and done.
func (s *sim) outcome(h store.History) {
	switch h.Run.Status {
	case store.StatusCompleted:
	case store.StatusCancelled, store.StatusSuperseded:
		return
	case store.StatusFailed:
		if !slices.ContainsFunc(h.Interrupts, func(i store.Interrupt) bool {
			return i.Kind == fermata.EffectInDoubt.Name() && i.Verdict == store.VerdictExpire
		}) {
			s.t.Errorf("I2: a run failed, and nobody can say why: %+v", h.Interrupts)
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
		s.t.Fatalf("I5: the first question is about %q, %v", asked.Action, err)
	}
	for _, i := range h.Interrupts {
		if i.Verdict != store.VerdictApprove {
			continue
		}
		done, ended := 0, false
		for _, e := range h.Effects {
			if _, happened := s.outside.receipt(e.IdempotencyKey); happened && e.Interrupt == i.ID {
				done = 1
			}
			ended = ended || e.Interrupt == i.ID && e.State == store.EffectSucceeded
		}
		if !ended && !slices.ContainsFunc(h.Interrupts, func(i store.Interrupt) bool { return i.Kind == fermata.EffectInDoubt.Name() && i.Applied }) {
			s.t.Errorf("I4: the run goes on after %s, and the ledger does not say that it was done: %+v", i.ID, h.Effects)
		}
		if done == 0 {
			s.t.Errorf("I2: %s was approved, the run is completed, and it was not done", i.ID)
		}
	}
}

// count counts what happened, to see that something does.
func (s *sim) count() {
	s.tally["deeds"] += len(s.outside.deeds)
	s.tally["looks at a target"] += s.outside.looks
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
