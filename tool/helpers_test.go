package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// question is the kind of the tools of these tests: a string question and a string answer.
var question = fermata.NewKind[string, string]("test-tool-question")

type ticket struct {
	From string `json:"from,omitempty" jsonschema:"IATA code"`
	To   string `json:"to"`
	Seat int    `json:"seat,omitempty"`
}

// railway is the external system of these tests.
type railway struct {
	mu     sync.Mutex
	booked []ticket
	keys   []string
	fail   func() error
}

func (r *railway) book(ctx context.Context, in ticket) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.booked = append(r.booked, in)
	r.keys = append(r.keys, tool.Key(ctx))
	if r.fail != nil {
		if err := r.fail(); err != nil {
			return "", err
		}
	}
	return "booked " + in.From + "-" + in.To, nil
}

func (r *railway) tool(options ...tool.Option) *tool.Tool {
	return tool.New("book", "Books a ticket.", r.book, options...)
}

// run is one call of a tool in a graph that does nothing else.
type run struct {
	t    *testing.T
	flow *graph.Flow[tool.Result]
	st   store.Checkpoints
	opts []graph.Option
}

func newRun(t *testing.T, tl *tool.Tool, args string, opts ...graph.Option) *run {
	t.Helper()
	g := graph.New[tool.Result]("g")
	g.Node("n", func(ctx context.Context, _ tool.Result) (tool.Result, error) {
		return fermata.DoAt(ctx, fermata.Segment{Type: fermata.SegmentTool, ID: tl.Name(), SubID: "c1"}, func(ctx context.Context) (tool.Result, error) {
			return tl.Call(ctx, json.RawMessage(args))
		})
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &run{t: t, flow: flow, st: memory.New(), opts: opts}
}

func (r *run) start() (tool.Result, error) {
	return r.flow.Run(r.t.Context(), tool.Result{}, append(r.opts, graph.WithStore(r.st), graph.WithRun("r"))...)
}

func (r *run) resume(opts ...graph.Option) (tool.Result, error) {
	return r.flow.Resume(r.t.Context(), "r", append(append(opts, r.opts...), graph.WithStore(r.st))...)
}

// answer resumes with an answer to the only interrupt in err.
func (r *run) answer(err error, answer any) (tool.Result, error) {
	r.t.Helper()
	return r.resume(graph.Answer(waitsFor(r.t, err).ID, answer))
}

// waitsFor returns the only open interrupt.
func waitsFor(t *testing.T, err error) *fermata.InterruptCtx {
	t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok || len(info.Interrupts) != 1 {
		t.Fatalf("the run should wait for one answer, but: %v", err)
	}
	return info.Interrupts[0]
}

// approval returns the only open interrupt as an approval request.
func approval(t *testing.T, err error) fermata.ApprovalRequest {
	t.Helper()
	asked, err := fermata.Approval.Question(waitsFor(t, err))
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func yes() fermata.Decision { return fermata.Decision{Verb: fermata.VerbApprove, By: "ann"} }

func edit(args string) fermata.Decision {
	return fermata.Decision{Verb: fermata.VerbApprove, By: "ann", Args: json.RawMessage(args)}
}

// wantDone checks that the call succeeded and the result for the model.
func wantDone(t *testing.T, got tool.Result, err error, text string) {
	t.Helper()
	if err != nil || got.Failed || got.Text != text {
		t.Fatalf("got %+v, %v; want %q", got, err, text)
	}
}

// wantFailed checks that the failure for the model contains all of these words.
func wantFailed(t *testing.T, got tool.Result, err error, words ...string) {
	t.Helper()
	if err != nil || !got.Failed {
		t.Fatalf("got %+v, %v; want a failure for the model", got, err)
	}
	for _, word := range words {
		if !strings.Contains(got.Text, word) {
			t.Errorf("the model gets %q, which does not contain %q", got.Text, word)
		}
	}
}

func isAnswerError(err error) bool { _, ok := errors.AsType[*fermata.AnswerError](err); return ok }
