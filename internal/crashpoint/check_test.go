package crashpoint

import (
	"encoding/json"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/internal/store"
)

// check compares the replies, the executed calls and the final state of the store.
func (s *scenario) check() {
	s.t.Helper()
	s.answersStay()
	run, history := s.history()
	s.deeds(run)
	s.verdicts(history)
	s.events(history)
	s.records()
}

// answersStay repeats every submission, to a process that has only the store.
func (s *scenario) answersStay() {
	s.t.Helper()
	s.close()
	s.processHost.open(point{})
	for _, before := range s.told {
		now := s.do(before.request)
		if before.steady && now.text != before.answer.text || (now.refused != "") != (before.answer.refused != "") {
			s.t.Errorf("I3: %s of %s got %s, and at the end %s", before.request.ResumeID, before.request.Actor, before.answer.text, now.text)
		}
	}
	s.close()
}

func (s *scenario) history() (store.Run, store.History) {
	s.t.Helper()
	all, err := s.site.look.List(s.t.Context(), s.account, store.RunFilter{})
	if err != nil || len(all) != 1 {
		s.t.Fatalf("I3: one start, but %d runs, %v", len(all), err)
	}
	history, err := s.site.look.History(s.t.Context(), s.account, all[0].ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return all[0], history
}

// deeds checks that exactly the approved actions were executed, once.
func (s *scenario) deeds(run store.Run) {
	s.t.Helper()
	want, cents := 1, asked
	switch s.verdict {
	case approves:
	case edits:
		cents = changed
	case rejects:
		want = 0
	}
	paid := executed(s.outside, pay)
	if len(paid) != want {
		s.t.Errorf("I4: paid %d times, want %d: %v", len(paid), want, paid)
	}
	for _, d := range paid {
		if d.Action.Cents != cents || d.Action.Order != s.account {
			s.t.Errorf("I6: %v was paid, but %d was approved", d, cents)
		}
	}
	if shipped := executed(s.outside, ship); len(shipped) != 0 {
		s.t.Errorf("I5: it was shipped without an approval: %v", shipped)
	}
	if run.Status != store.StatusCompleted {
		s.t.Errorf("I17: the run is %s", run.Status)
	}
	view, err := s.observer().GetRun(s.t.Context(), s.account, "order")
	if err != nil {
		s.t.Fatal(err)
	}
	var end order
	if done, ok := view.Outcome.(fermata.Completed); !ok || json.Unmarshal(done.Output, &end) != nil {
		s.t.Fatalf("it came to %#v", view.Outcome)
	}
	result := string(simtest.Rejected)
	if want == 1 && len(paid) == 1 {
		result = paid[0].Receipt
	}
	if end.Pay != result || end.Ship != string(simtest.Rejected) {
		s.t.Errorf("I2: it ends with %+v, want %q", end, result)
	}
}

// verdicts checks that the recorded decisions are those that people made, one for each interrupt.
func (s *scenario) verdicts(h store.History) {
	s.t.Helper()
	want := map[string]string{"bob-pay": "approve", "eve-ship": "reject"}
	if s.verdict == rejects {
		want = map[string]string{"ann-pay": "reject", "eve-ship": "reject"}
	}
	for _, t := range s.told {
		if strings.HasSuffix(t.request.ResumeID, "-doubt") && t.steady {
			want[t.request.ResumeID] = "answer"
		}
	}
	for _, i := range h.Interrupts {
		if i.State != store.InterruptDecided || !i.Applied || want[i.ResumeID] != string(i.Verdict) {
			s.t.Errorf("I1, I2: %s is %s by %q (%s), applied %v", i.Kind, i.Verdict, i.ResumeID, i.State, i.Applied)
		}
		delete(want, i.ResumeID)
	}
	if len(want) > 0 {
		s.t.Errorf("I2: lost: %v", want)
	}
}

// events checks that the history is valid, and that exactly the approved effects are in the ledger.
func (s *scenario) events(h store.History) {
	s.t.Helper()
	for _, v := range simtest.CheckHistory(h, s.outside.Has) {
		s.t.Error(v)
	}
	begun := 0
	for n, e := range h.Events {
		if e.Kind == store.EventEffectBegun {
			begun++
		}
		if e.Kind == store.EventCompleted && n != len(h.Events)-1 && h.Events[n+1].Kind != store.EventEffectEnded {
			s.t.Errorf("I16: %s after the end", h.Events[n+1].Kind)
		}
	}
	if begun != len(h.Effects) || s.verdict == rejects && begun > 0 || s.verdict != rejects && begun == 0 {
		s.t.Errorf("I4: %d effects were begun, but the ledger has %d entries", begun, len(h.Effects))
	}
}

// records verifies the audit chain, checks that everything is recorded once, and reconciles it.
func (s *scenario) records() {
	s.t.Helper()
	if err := simtest.CheckLog(s.t.Context(), s.site.look, s.account); err != nil {
		s.t.Error(err)
	}
	found, err := s.observer().Reconcile(s.t.Context(), s.account)
	if err != nil || len(found) > 0 {
		s.t.Errorf("I12: reconciliation: %+v, %v", found, err)
	}
	kinds := s.lines()
	// an edit has its own record
	decisions := map[verdict]int{approves: 3, edits: 4, rejects: 2}[s.verdict] + s.doubts
	for kind, want := range map[string]int{"run.started": 1, "run.ended": 1, "request.decided": decisions, "request.asked": 2 + min(s.doubts, 1)} {
		if kinds[kind] != want {
			s.t.Errorf("I12: %d records of %s, want %d", kinds[kind], kind, want)
		}
	}
	s.refusals = kinds["request.refused"]
}

// lines counts the audit records by kind.
func (s *scenario) lines() map[string]int {
	s.t.Helper()
	all, err := s.site.look.AuditLines(s.t.Context(), s.account, 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	kinds := make(map[string]int)
	for _, line := range all {
		var said struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(line.Raw, &said); err != nil {
			s.t.Fatal(err)
		}
		kinds[said.Kind]++
	}
	return kinds
}
