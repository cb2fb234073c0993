package tool_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// office is the state of a graph with a tools node.
type office struct {
	Calls []tool.Call       `json:"calls"`
	Done  []tool.CallResult `json:"done"`
}

// desk builds graphs with a tools node and counts the entries of its tools.
type desk struct {
	t     *testing.T
	mu    sync.Mutex
	log   []string
	node  tool.Node[office]
	saved store.Checkpoints
}

func newDesk(t *testing.T, tools ...*tool.Tool) *desk {
	d := &desk{t: t, saved: memory.New()}
	d.node = tool.Node[office]{
		Tools:   append(tools, d.asking(), d.telling()),
		Calls:   func(s office) []tool.Call { return s.Calls },
		Results: func(s *office, done []tool.CallResult) { s.Done = done },
	}
	return d
}

func (d *desk) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, text)
}

func (d *desk) asking() *tool.Tool {
	return tool.New("ask", "Asks a person.", func(ctx context.Context, in ticket) (string, error) {
		answer, err := question.Ask(ctx, in.To+"?")
		if err == nil {
			d.note("ask " + in.To)
		}
		return answer, err
	})
}

func (d *desk) telling() *tool.Tool {
	return tool.New("tell", "Tells.", func(_ context.Context, in ticket) (string, error) {
		d.note("tell " + in.To)
		return "told " + in.To, nil
	})
}

// flow compiles the graph again, as another process does.
func (d *desk) flow() *graph.Flow[office] {
	d.t.Helper()
	g := graph.New[office]("office")
	d.node.Add(g, "tools")
	g.Edge(graph.Start, "tools")
	g.Edge("tools", graph.End)
	flow, err := g.Compile()
	if err != nil {
		d.t.Fatal(err)
	}
	return flow
}

func (d *desk) start(calls ...tool.Call) (office, error) {
	d.t.Helper()
	return d.flow().Run(d.t.Context(), office{Calls: calls}, graph.WithStore(d.saved), graph.WithRun("r"))
}

func (d *desk) resume(options ...graph.Option) (office, error) {
	d.t.Helper()
	return d.flow().Resume(d.t.Context(), "r", append(options, graph.WithStore(d.saved))...)
}

func (d *desk) wantLog(want ...string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.log); diff != "" {
		d.t.Errorf("the tools (-want +got):\n%s", diff)
	}
}

func callOf(id, name, to string) tool.Call {
	return tool.Call{ID: id, Name: name, Args: fmt.Sprintf(`{"to":%q}`, to)}
}

// open returns the open interrupts by the end of their address.
func open(t *testing.T, err error) map[string]string {
	t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok {
		t.Fatalf("the run should wait, but: %v", err)
	}
	ids := make(map[string]string)
	for _, ic := range info.Interrupts {
		ids[strings.TrimPrefix(ic.Address.String(), "runnable:office;node:tools;")] = ic.ID
	}
	return ids
}

func texts(done []tool.CallResult) (list []string) {
	for _, d := range done {
		list = append(list, d.Call.ID+" "+d.Result.Text)
	}
	return list
}

// Two calls of one tool wait at their own addresses and are answered one after the other. The
// finished call beside them is not made again.
func TestNode_CallsOfATurnAreAnsweredSeparately(t *testing.T) {
	d := newDesk(t)
	_, err := d.start(callOf("1", "ask", "PAR"), callOf("2", "tell", "ROM"), callOf("3", "ask", "OSL"))
	first := open(t, err)
	if len(first) != 2 || first["tool:ask#1"] == "" || first["tool:ask#3"] == "" {
		t.Fatalf("open are %v", first)
	}
	_, err = d.resume(graph.Answer(first["tool:ask#3"], "yes"))
	if second := open(t, err); !cmp.Equal(second, map[string]string{"tool:ask#1": first["tool:ask#1"]}) {
		t.Fatalf("open are %v", second)
	}
	d.wantLog("tell ROM", "ask OSL")
	state, err := d.resume(graph.Answer(first["tool:ask#1"], "no"))
	if want := []string{"1 no", "2 told ROM", "3 yes"}; err != nil || !cmp.Equal(texts(state.Done), want) {
		t.Fatalf("got %v, %v; want %v", texts(state.Done), err, want)
	}
	d.wantLog("tell ROM", "ask OSL", "ask PAR")
}

func TestNode_SequentialStopsAtTheFirstCallThatWaits(t *testing.T) {
	d := newDesk(t)
	d.node.Sequential = true
	_, err := d.start(callOf("1", "tell", "ROM"), callOf("2", "ask", "PAR"), callOf("3", "tell", "OSL"))
	d.wantLog("tell ROM")
	state, err := d.resume(graph.Answer(open(t, err)["tool:ask#2"], "yes"))
	if err != nil || len(state.Done) != 3 {
		t.Fatalf("got %+v, %v", state, err)
	}
	d.wantLog("tell ROM", "ask PAR", "tell OSL")
}

// A model may repeat an id or give none: every call still has its own address, and the result
// names the id of the model.
func TestNode_CallsWithoutAnIDOfTheirOwnHaveTheirOwnAddress(t *testing.T) {
	d := newDesk(t)
	_, err := d.start(callOf("x", "ask", "PAR"), callOf("x", "ask", "ROM"), callOf("", "ask", "OSL"), callOf("", "ask", "BER"))
	ids := open(t, err)
	if len(ids) != 4 {
		t.Fatalf("open are %v", ids)
	}
	info, _ := fermata.ExtractInterruptInfo(err)
	var answers []graph.Option
	for _, ic := range info.Interrupts {
		answers = append(answers, graph.Answer(ic.ID, "about "+ic.Info.(string)))
	}
	state, err := d.resume(answers...)
	if want := []string{"x about PAR?", "x about ROM?", " about OSL?", " about BER?"}; err != nil || !cmp.Equal(texts(state.Done), want) {
		t.Errorf("got %v, %v; want %v", texts(state.Done), err, want)
	}
}

func TestNode_FailuresForTheModelAreResults(t *testing.T) {
	d := newDesk(t)
	state, err := d.start(callOf("1", "shout", "PAR"), tool.Call{ID: "2", Name: "tell", Args: "{"},
		tool.Call{ID: "3", Name: "tell", Args: `{"to":"X"}`, CutOff: true}, callOf("4", "tell", "ROM"))
	if err != nil || len(state.Done) != 4 {
		t.Fatalf("got %+v, %v", state, err)
	}
	for i, want := range []string{"There is no tool \"shout\". The tools are: ask, tell.", "its arguments are invalid", "ended inside it", "told ROM"} {
		if got := state.Done[i].Result; !strings.Contains(got.Text, want) || got.Failed != (i < 3) {
			t.Errorf("%d: got %+v, want %q", i, got, want)
		}
	}
	d.wantLog("tell ROM")
}

// I4: an approved call in a tools node is an effect like any other.
func TestI4_NodeCallsAnApprovedToolWithExactlyTheApprovedArguments(t *testing.T) {
	var r railway
	d := newDesk(t, tool.Approve(r.tool()))
	_, err := d.start(callOf("1", "book", "PAR"), callOf("2", "book", "ROM"))
	info, _ := fermata.ExtractInterruptInfo(err)
	if info == nil || len(info.Interrupts) != 2 || len(r.booked) != 0 {
		t.Fatalf("got %v, booked %v", err, r.booked)
	}
	state, err := d.resume(graph.Answer(info.Interrupts[0].ID, yes()),
		graph.Answer(info.Interrupts[1].ID, fermata.Decision{Verb: fermata.VerbReject, By: "ann", Reason: "too dear"}))
	if err != nil || len(r.booked) != 1 || r.booked[0].To != "PAR" || state.Done[0].Result.Failed || !strings.Contains(state.Done[1].Result.Text, "too dear") {
		t.Errorf("got %+v, %v, booked %+v", state.Done, err, r.booked)
	}
}

// I5: a person was asked about a call, and the program no longer has its tool.
func TestI5_NodeWithoutTheToolOfAWaitingCallFails(t *testing.T) {
	for name, answer := range map[string]any{"ask": "yes", "book": yes()} {
		var r railway
		d := newDesk(t, tool.Approve(r.tool()))
		_, err := d.start(callOf("1", name, "PAR"))
		d.node.Tools = []*tool.Tool{d.telling()}
		state, err := d.resume(graph.Answer(waitsFor(t, err).ID, answer))
		if changed, ok := errors.AsType[*tool.ProgramChangedError](err); !ok || changed.Tool != name {
			t.Errorf("%s: got %+v, %v", name, state, err)
		}
	}
}

func TestNode_PanicOfAToolIsAnErrorOfTheRunAndOtherResultsAreKept(t *testing.T) {
	fail := true
	d := newDesk(t, tool.New("fall", "Fails once.", func(context.Context, ticket) (string, error) {
		if fail {
			panic("fell")
		}
		return "stood", nil
	}))
	if _, err := d.start(callOf("1", "fall", "PAR"), callOf("2", "tell", "ROM")); err == nil || !strings.Contains(err.Error(), "fell") {
		t.Fatalf("got %v", err)
	}
	fail = false
	state, err := d.resume()
	if want := []string{"1 stood", "2 told ROM"}; err != nil || !cmp.Equal(texts(state.Done), want) {
		t.Fatalf("got %v, %v", texts(state.Done), err)
	}
	d.wantLog("tell ROM")
}

func TestNode_MaxParallelLimitsTheCallsAtOnce(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	d := newDesk(t, tool.New("count", "Counts.", func(context.Context, ticket) (string, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return "", nil
	}))
	d.node.MaxParallel = 2
	var calls []tool.Call
	for i := range 20 {
		calls = append(calls, callOf(fmt.Sprint(i), "count", "X"))
	}
	if state, err := d.start(calls...); err != nil || len(state.Done) != 20 || most > 2 {
		t.Errorf("got %d results, %v, %d at once", len(state.Done), err, most)
	}
}

func TestNode_AnIncompleteNodePanicsWithWhatIsMissing(t *testing.T) {
	calls, done := func(office) []tool.Call { return nil }, func(*office, []tool.CallResult) {}
	d := newDesk(t)
	for want, node := range map[string]tool.Node[office]{
		"Calls":           {Tools: d.node.Tools, Results: done},
		"Results":         {Tools: d.node.Tools, Calls: calls},
		"no tools":        {Calls: calls, Results: done},
		`tool "tell" twi`: {Tools: []*tool.Tool{d.telling(), d.telling()}, Calls: calls, Results: done},
		"nil":             {Tools: []*tool.Tool{nil}, Calls: calls, Results: done},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) || !strings.Contains(text, `"tools"`) {
					t.Errorf("got panic %q, want %q", text, want)
				}
			}()
			node.Add(graph.New[office]("g"), "tools")
		}()
	}
}

// The output of a streaming tool in a tools node is output of the graph.
func TestNode_OutputOfAStreamingToolIsOutputOfTheGraph(t *testing.T) {
	d := newDesk(t, tool.NewStream("read", "Reads aloud.", func(context.Context, ticket) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { _ = yield("one ", nil) && yield("two", nil) }
	}))
	var heard []string
	for event, err := range d.flow().Stream(t.Context(), office{Calls: []tool.Call{callOf("1", "read", "X")}}) {
		if err != nil {
			t.Fatal(err)
		}
		if output, ok := event.(graph.Output); ok {
			heard = append(heard, output.Address+" "+output.Text)
		}
	}
	if want := []string{"runnable:office;node:tools;tool:read#1 one ", "runnable:office;node:tools;tool:read#1 two"}; !cmp.Equal(heard, want) {
		t.Errorf("got %q", heard)
	}
}
