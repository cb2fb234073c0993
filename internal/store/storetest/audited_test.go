package storetest_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// Every method of the port is either checked or exempt with a reason. A new method fails here until
// it has a rule.
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

// recordingTB collects the errors of a test.
type recordingTB struct {
	testing.TB
	failures []string
}

func (r *recordingTB) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// line returns an audit line of a kind, about a run and an interrupt.
func line(kind, run, interrupt string) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"place":{"run":%q,"interrupt":%q}}`, kind, run, interrupt)
}

// with returns writes that consist of audit lines.
func with(lines ...[]byte) store.Writes { return store.Writes{Audit: lines} }

// Each change of a status passes with its line and is reported without it.
func TestI12_AuditedReportsAStatusChangeWithoutItsLine(t *testing.T) {
	type env struct {
		t     *testing.T
		s     store.Store
		lease store.Lease
	}
	question := []store.NewInterrupt{{ID: "q1", Kind: "k", Data: []byte("{}")}}
	request := store.DocumentChange{Kind: store.RequestDocument, ID: "q1", Run: "r1", Body: []byte("{}"), Index: []byte(`{"state":"open","revision":1}`)}
	asks := func(e env) error {
		_, err := e.s.EndExecution(e.t.Context(), e.lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: question, Writes: with(line("request.asked", "r1", "q1"))})
		return err
	}
	effect := store.NewEffect{Interrupt: "q9", Attempt: 1, ActionDigest: "d", IdempotencyKey: "k", Ruling: &store.PolicyRuling{Address: "a", Kind: "k", Data: []byte("{}"), By: "p"}}
	begins := func(e env, writes store.Writes) error {
		effect := effect
		effect.Writes = writes
		_, begun, err := e.s.BeginEffect(e.t.Context(), e.lease, effect)
		if err == nil && !begun {
			e.t.Error("the effect was not begun")
		}
		return err
	}
	for name, test := range map[string]struct {
		before func(env) error
		line   []byte
		call   func(env, store.Writes) error
	}{
		"EndExecution asks": {nil, line("request.asked", "r1", "q1"), func(e env, writes store.Writes) error {
			_, err := e.s.EndExecution(e.t.Context(), e.lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: question, Writes: writes})
			return err
		}},
		"EndExecution completes": {nil, line("run.ended", "r1", ""), func(e env, writes store.Writes) error {
			_, err := e.s.EndExecution(e.t.Context(), e.lease, store.ExecutionEnd{Status: store.StatusCompleted, Writes: writes})
			return err
		}},
		// one of two interrupts is answered, and the run no longer raises the other
		"EndExecution withdraws": {func(e env) error {
			both := store.ExecutionEnd{Status: store.StatusWaiting, Open: []store.NewInterrupt{question[0], {ID: "q2", Kind: "k", Data: []byte("{}")}}}
			both.Writes = with(line("request.asked", "r1", "q1"), line("request.asked", "r1", "q2"))
			if _, err := e.s.EndExecution(e.t.Context(), e.lease, both); err != nil {
				return err
			}
			d := store.Decision{Account: "acme", Run: "r1", ResumeID: "1", Actor: "ann", BodyDigest: "b", Answers: []store.Answer{{Interrupt: "q2", Verdict: store.VerdictAnswer, Data: []byte("1")}}}
			d.Claim, d.Writes = &store.Claim{Owner: "o", Lease: time.Minute}, with(line("request.decided", "r1", "q2"))
			_, err := e.s.Decide(e.t.Context(), d)
			return err
		}, line("request.withdrawn", "r1", "q1"), func(e env, writes store.Writes) error {
			lease := e.lease
			lease.Fence++
			_, err := e.s.EndExecution(e.t.Context(), lease, store.ExecutionEnd{Status: store.StatusWaiting, Applied: []string{"q2"}, Open: []store.NewInterrupt{}, Writes: writes})
			return err
		}},
		"Decide": {asks, line("request.decided", "r1", "q1"), func(e env, writes store.Writes) error {
			_, err := e.s.Decide(e.t.Context(), store.Decision{
				Account: "acme", Run: "r1", ResumeID: "1", Actor: "ann", BodyDigest: "b", Answers: []store.Answer{{Interrupt: "q1", Verdict: store.VerdictAnswer, Data: []byte("1")}}, Writes: writes,
			})
			return err
		}},
		"Cancel ends": {nil, line("run.ended", "r1", ""), func(e env, writes store.Writes) error {
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.StatusCancelled, nil, writes)
			return err
		}},
		"Cancel withdraws": {asks, line("request.withdrawn", "r1", "q1"), func(e env, writes store.Writes) error {
			writes.Audit = append(writes.Audit, line("run.ended", "r1", ""))
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.StatusCancelled, nil, writes)
			return err
		}},
		"Retry": {func(e env) error { return e.s.Release(e.t.Context(), e.lease, store.Release{Park: true}) }, line("run.retried", "r1", ""), func(e env, writes store.Writes) error {
			_, err := e.s.Retry(e.t.Context(), "acme", "r1", writes)
			return err
		}},
		"Expire": {func(e env) error {
			late := []store.NewInterrupt{{ID: "q1", Kind: "k", Data: []byte("{}"), Timeout: time.Nanosecond}}
			_, err := e.s.EndExecution(e.t.Context(), e.lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: late, Writes: with(line("request.asked", "r1", "q1"))})
			return err
		}, line("request.expired", "r1", "q1"), func(e env, writes store.Writes) error {
			for {
				over, err := e.s.Expire(e.t.Context(), time.Time{}, 10, func(store.Interrupt, *store.Document) store.Writes { return writes })
				if err != nil || len(over) > 0 {
					return err
				}
			}
		}},
		"BeginEffect": {nil, line("effect.begun", "r1", "q9"), begins},
		"EndEffect": {func(e env) error { return begins(e, with(line("effect.begun", "r1", "q9"))) }, line("effect.ended", "r1", "q9"), func(e env, writes store.Writes) error {
			return e.s.EndEffect(e.t.Context(), store.EffectEnd{Account: "acme", Interrupt: "q9", Attempt: 1, State: store.EffectSucceeded, Writes: writes})
		}},
		"CommitWrites changes a request": {func(e env) error {
			_, err := e.s.EndExecution(e.t.Context(), e.lease, store.ExecutionEnd{
				Status: store.StatusWaiting, Open: question, Writes: store.Writes{Documents: []store.DocumentChange{request}, Audit: [][]byte{line("request.asked", "r1", "q1")}},
			})
			return err
		}, line("request.claimed", "r1", "q1"), func(e env, writes store.Writes) error {
			changed := request
			changed.BaseRevision, changed.Run, changed.Index = 1, "", []byte(`{"state":"open","revision":2}`)
			writes.Documents = append(writes.Documents, changed)
			return e.s.CommitWrites(e.t.Context(), "acme", writes)
		}},
		"DeleteRun": {func(e env) error {
			_, err := e.s.Cancel(e.t.Context(), "acme", "r1", store.StatusCancelled, nil, with(line("run.ended", "r1", "")))
			return err
		}, line("audit.erased", "r1", ""), func(e env, writes store.Writes) error {
			return e.s.DeleteRun(e.t.Context(), "acme", "r1", writes)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lines := range [][][]byte{{test.line}, nil} {
				reported := &recordingTB{TB: t}
				s := storetest.Audited(reported, memory.NewStore(nil))
				lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r1", StateKey: "k", Provider: "p", Graph: "g", Owner: "o", Lease: time.Minute, Writes: with(line("run.started", "r1", ""))})
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
	s := storetest.Audited(reported, memory.NewStore(nil))
	if _, err := s.Create(context.Background(), store.NewRun{Account: "acme", ID: "r1", StateKey: "k", Provider: "p", Graph: "g", Owner: "o", Lease: time.Minute}); err != nil || len(reported.failures) != 1 {
		t.Errorf("Create without a line: %v, it reports %q", err, reported.failures)
	}
}
