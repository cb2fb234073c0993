package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// An untyped interrupt, raised directly or by the legacy calls, can be used on a server; it used to
// fail with "bad_question".
func TestChat_UntypedInterruptCanBeAnswered(t *testing.T) {
	byHand := single(t, "by-hand", func(ctx context.Context, n table) (table, error) {
		target, _, name := fermata.GetResumeContext[string](ctx)
		if !target {
			return n, fermata.StatefulInterrupt(ctx, "Which table?", 1)
		}
		return table{name}, nil
	})
	parts := single(t, "parts", func(ctx context.Context, n table) (table, error) {
		var errs []error
		for _, id := range []string{"a", "b"} {
			ctx := fermata.AppendAddressSegment(ctx, "part", id)
			target, _, name := fermata.GetResumeContext[string](ctx)
			if n.Name += name; !target {
				errs = append(errs, fermata.Interrupt(ctx, "Part "+id+"?"))
			}
		}
		if errs != nil {
			return n, fermata.CompositeInterrupt(ctx, nil, nil, errs...)
		}
		return n, nil
	})
	ofOld := single(t, "of-old", func(ctx context.Context, n table) (table, error) {
		if target, _, _ := fermata.GetResumeContext[string](ctx); !target {
			return n, fermata.InterruptAndRerun
		}
		return table{"again"}, nil
	})
	g := graph.New[table]("held")
	g.Node("only", func(_ context.Context, n table) (table, error) { return n, nil })
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	g.HoldBefore("only")
	s := openWith(t, nil, nil, byHand, parts, ofOld, compiled(t, g, inproc.FlowConfig[table]{}))
	say := func(key, resume, value string) answer {
		return s.call("approver@acme", "POST", "/api/v1/ai/chat", fmt.Sprintf(`{"stateKey":%q,"resumeId":%q,%s}`, key, resume, value))
	}
	begin := func(graph string) answer {
		return s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:%s","stateKey":%q,"input":{}}`, graph, graph))
	}

	if got := begin("by-hand"); got.field("status") != "needs_input" || !strings.Contains(got.body, `"kind":"interrupt","data":"Which table?"`) {
		t.Fatalf("%+v", got)
	}
	// the node has to reject this value
	if got := say("by-hand", "1", `"resumeValue":7`); got.field("status") != "needs_input" {
		t.Errorf("%+v", got)
	}
	if got := say("by-hand", "2", `"resumeValue":"users"`); got.field("status") != "completed" || !strings.Contains(got.body, `"users"`) {
		t.Errorf("%+v", got)
	}

	if got := begin("of-old"); got.field("status") != "needs_input" {
		t.Fatalf("%+v", got)
	}
	if got := say("of-old", "3", `"resumeValue":null`); got.field("status") != "completed" || !strings.Contains(got.body, `"again"`) {
		t.Errorf("%+v", got)
	}

	// A hold used to reject the same: it could only be continued with its whole state.
	if got := begin("held"); got.field("status") != "needs_input" {
		t.Fatalf("%+v", got)
	}
	named := say("held", "4", `"resumeValue":null`) // it may be another hold than the person looked at
	if named.field("code") != "interrupt_id_required" {
		t.Errorf("%+v", named)
	}
	if got := say("held", "4b", fmt.Sprintf(`"interruptId":%q,"resumeValue":null`, named.field("interruptId"))); got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}

	s.chat("agent@acme", `{"graphId":"inproc:held","stateKey":"held-2","input":{}}`)
	if got := s.call("approver@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"5","answer":null}`); got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}

	if got := begin("parts"); got.field("status") != "needs_input" {
		t.Fatalf("%+v", got)
	}
	for _, q := range s.openRequests("acme") {
		say("parts", q.ID, fmt.Sprintf(`"resumeTargets":{%q:%q}`, q.ID, q.Address[len(q.Address)-1:]))
	}
	if got := s.call("agent@acme", "GET", "/api/v1/runs/parts", ""); !strings.Contains(got.body, `"name":"ab"`) {
		t.Errorf("%+v", got)
	}
}
