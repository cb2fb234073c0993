package storetest_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/store/storetest"
)

// Every method of the port is either checked or exempt with a reason. A new method fails here until
// somebody has decided which it is.
func TestI12_EveryMethodOfThePortHasAnAuditRule(t *testing.T) {
	rules := storetest.AuditedMethods()
	port := reflect.TypeFor[store.Store]()
	for i := range port.NumMethod() {
		name := port.Method(i).Name
		rule, ok := rules[name]
		if !ok || rule.Checked == (rule.Exempt != "") {
			t.Errorf("store.Store.%s: want either a check or a reason why there is none, got %+v", name, rule)
		}
		delete(rules, name)
	}
	for name := range rules {
		t.Errorf("store.Store has no method %s", name)
	}
}

// recordingTB collects what a test would report.
type recordingTB struct {
	testing.TB
	failures []string
}

func (r *recordingTB) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// line is an audit line of a kind, about a run and an interrupt.
func line(kind, run, interrupt string) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"place":{"run":%q,"interrupt":%q}}`, kind, run, interrupt)
}

// with returns writes that consist of audit lines.
func with(lines ...[]byte) store.Beside { return store.Beside{Audit: lines} }

// Each change of a status passes with its line and is reported without it.
func TestI12_AuditedReportsAStatusChangeWithoutItsLine(t *testing.T) {
	type env struct {
		t     *testing.T
		s     store.Store
		lease store.Lease
	}
	question := []store.NewInterrupt{{ID: "q1", Kind: "k", Data: []byte("{}")}}
	request := store.PaperChange{Kind: store.RequestPaper, ID: "q1", Run: "r1", Body: []byte("{}"), Facts: []byte(`{"state":"open","revision":1}`)}
	asks := func(e env) error {
		_, err := e.s.Rest(e.t.Context(), e.lease, store.Rest{Status: store.Waiting, Open: question, Beside: with(line("request.asked", "r1", "q1"))})
		return err
	}
	effect := store.NewEffect{Interrupt: "q9", Number: 1, Digest: "d", Key: "k", Allowed: &store.Allowed{Address: "a", Kind: "k", Data: []byte("{}"), By: "p"}}
	begins := func(e env, writes store.Beside) error {
		effect := effect
		effect.Beside = writes
		_, begun, err := e.s.Begin(e.t.Context(), e.lease, effect)
		if err == nil && !begun {
			e.t.Error("the effect was not begun")
		}
		return err
	}
	for name, test := range map[string]struct {
		before func(env) error
		line   []byte
		call   func(env, store.Beside) error
	}{
		"Rest asks": {nil, line("request.asked", "r1", "q1"), func(e env, writes store.Beside) error {
			_, err := e.s.Rest(e.t.Context(), e.lease, store.Rest{Status: store.Waiting, Open: question, Beside: writes})
			return err
		}},
		"Rest completes": {nil, line("run.ended", "r1", ""), func(e env, writes store.Beside) error {
			_, err := e.s.Rest(e.t.Context(), e.lease, store.Rest{Status: store.Completed, Beside: writes})
			return err
		}},
		"Rest withdraws": {func(e env) error { // one of two questions is answered, and the run asks the other one no more
			both := store.Rest{Status: store.Waiting, Open: []store.NewInterrupt{question[0], {ID: "q2", Kind: "k", Data: []byte("{}")}}}
			both.Beside = with(line("request.asked", "r1", "q1"), line("request.asked", "r1", "q2"))
			if _, err := e.s.Rest(e.t.Context(), e.lease, both); err != nil {
				return err
			}
			d := store.Decision{Account: "acme", Run: "r1", ResumeID: "1", Actor: "ann", Body: "b", Answers: []store.Answer{{Interrupt: "q2", Verdict: store.Answered, Data: []byte("1")}}}
			d.Claim, d.Beside = &store.Claim{Owner: "o", Lease: time.Minute}, with(line("request.decided", "r1", "q2"))
			_, err := e.s.Decide(e.t.Context(), d)
			return err
		}, line("request.withdrawn", "r1", "q1"), func(e env, writes store.Beside) error {
			lease := e.lease
			lease.Fence++
			_, err := e.s.Rest(e.t.Context(), lease, store.Rest{Status: store.Waiting, Applied: []string{"q2"}, Open: []store.NewInterrupt{}, Beside: writes})
			return err
		}},
		"Decide": {asks, line("request.decided", "r1", "q1"), func(e env, writes store.Beside) error {
			_, err := e.s.Decide(e.t.Context(), store.Decision{
				Account: "acme", Run: "r1", ResumeID: "1", Actor: "ann", Body: "b", Answers: []store.Answer{{Interrupt: "q1", Verdict: store.Answered, Data: []byte("1")}}, Beside: writes,
			})
			return err
		}},
		"Cancel ends": {nil, line("run.ended", "r1", ""), func(e env, writes store.Beside) error {
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.Cancelled, nil, writes)
			return err
		}},
		"Cancel withdraws": {asks, line("request.withdrawn", "r1", "q1"), func(e env, writes store.Beside) error {
			writes.Audit = append(writes.Audit, line("run.ended", "r1", ""))
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.Cancelled, nil, writes)
			return err
		}},
		"Retry": {func(e env) error { return e.s.Release(e.t.Context(), e.lease, store.Release{Park: true}) }, line("run.retried", "r1", ""), func(e env, writes store.Beside) error {
			_, err := e.s.Retry(e.t.Context(), "acme", "r1", writes)
			return err
		}},
		"Expire": {func(e env) error {
			late := []store.NewInterrupt{{ID: "q1", Kind: "k", Data: []byte("{}"), Timeout: time.Nanosecond}}
			_, err := e.s.Rest(e.t.Context(), e.lease, store.Rest{Status: store.Waiting, Open: late, Beside: with(line("request.asked", "r1", "q1"))})
			return err
		}, line("request.expired", "r1", "q1"), func(e env, writes store.Beside) error {
			for {
				over, err := e.s.Expire(e.t.Context(), time.Time{}, 10, func(store.Interrupt, *store.Paper) store.Beside { return writes })
				if err != nil || len(over) > 0 {
					return err
				}
			}
		}},
		"Begin": {nil, line("effect.begun", "r1", "q9"), begins},
		"End": {func(e env) error { return begins(e, with(line("effect.begun", "r1", "q9"))) }, line("effect.ended", "r1", "q9"), func(e env, writes store.Beside) error {
			return e.s.End(e.t.Context(), store.EffectEnd{Account: "acme", Interrupt: "q9", Number: 1, State: store.Succeeded, Beside: writes})
		}},
		"Amend changes a request": {func(e env) error {
			_, err := e.s.Rest(e.t.Context(), e.lease, store.Rest{
				Status: store.Waiting, Open: question, Beside: store.Beside{Papers: []store.PaperChange{request}, Audit: [][]byte{line("request.asked", "r1", "q1")}},
			})
			return err
		}, line("request.claimed", "r1", "q1"), func(e env, writes store.Beside) error {
			changed := request
			changed.Base, changed.Run, changed.Facts = 1, "", []byte(`{"state":"open","revision":2}`)
			writes.Papers = append(writes.Papers, changed)
			return e.s.Amend(e.t.Context(), "acme", writes)
		}},
		"Forget": {func(e env) error {
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.Cancelled, nil, with(line("run.ended", "r1", "")))
			return err
		}, line("audit.erased", "r1", ""), func(e env, writes store.Beside) error {
			return e.s.Forget(e.t.Context(), "acme", "r1", writes)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lines := range [][][]byte{{test.line}, nil} {
				reported := &recordingTB{TB: t}
				s := storetest.Audited(reported, memory.NewRuns(nil))
				lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r1", StateKey: "k", Provider: "p", Graph: "g", Owner: "o", Lease: time.Minute, Beside: with(line("run.started", "r1", ""))})
				if err != nil {
					t.Fatal(err)
				}
				e := env{t, s, lease}
				if test.before != nil {
					if err := test.before(e); err != nil {
						t.Fatal(err)
					}
				}
				if len(reported.failures) != 0 {
					t.Fatalf("before the call it reports %q", reported.failures)
				}
				if err := test.call(e, with(lines...)); err != nil {
					t.Fatal(err)
				}
				if lines != nil && len(reported.failures) != 0 || lines == nil && (len(reported.failures) != 1 || !strings.HasPrefix(reported.failures[0], "I12: ")) {
					t.Errorf("with %d lines it reports %q", len(lines), reported.failures)
				}
			}
		})
	}
	reported := &recordingTB{TB: t}
	s := storetest.Audited(reported, memory.NewRuns(nil))
	if _, err := s.Create(context.Background(), store.NewRun{Account: "acme", ID: "r1", StateKey: "k", Provider: "p", Graph: "g", Owner: "o", Lease: time.Minute}); err != nil || len(reported.failures) != 1 {
		t.Errorf("Create without a line: %v, it reports %q", err, reported.failures)
	}
}
