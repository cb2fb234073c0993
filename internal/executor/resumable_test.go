package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

type letter struct {
	Text string `json:"text"`
}

var sealKind = fermata.NewKind[string, string]("seal-of-check-test")

// build returns a provider with a graph named letter that has one node with the given name, and
// with other graphs.
func build(t *testing.T, node string, others ...inproc.Graph) provider.Provider {
	t.Helper()
	g := graph.New[letter]("letter")
	g.Node(node, func(ctx context.Context, l letter) (letter, error) {
		_, err := sealKind.Ask(ctx, l.Text)
		return l, err
	})
	g.Edge(graph.Start, node)
	g.Edge(node, graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(append(others, inproc.Flow(flow, inproc.FlowConfig[letter]{}))...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func clerk(t *testing.T) inproc.Graph {
	t.Helper()
	post := tool.New("post", "Posts it.", func(context.Context, letter) (string, error) { return "posted", nil })
	a, err := agent.NewChat(agent.Chat{Name: "clerk", Model: script.New(script.Call("post", `{"text":"x"}`), script.Say("done")), Tools: []*tool.Tool{tool.Approve(post)}})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a})
}

// unresumable checks all runs in a store, and returns the errors by run.
func unresumable(t *testing.T, e *executor.Executor) (seen int, why map[string]error) {
	t.Helper()
	why = make(map[string]error)
	for c, err := range e.CheckResumable(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; c.Err != nil {
			why[c.Account+"/"+c.StateKey] = c.Err
		}
	}
	return seen, why
}

// Before a deployment: lists the open runs that the new program cannot resume.
func TestCheck_ListsRunsThatAProgramCannotResume(t *testing.T) {
	s := memory.NewStore(nil)
	old := executorOf(t, s, build(t, "sign", clerk(t)), nil)
	for _, account := range []string{"acme", "other"} {
		began := mustRun(t, old, executor.RunRequest{Account: account, StateKey: "letter", Graph: "inproc:letter", Input: json.RawMessage(`{"text":"x"}`)})
		if _, waits := began.(fermata.NeedsInput); !waits {
			t.Fatalf("outcome %#v", began)
		}
	}
	mustRun(t, old, executor.RunRequest{Account: "acme", StateKey: "chat", Graph: "inproc:clerk", Input: json.RawMessage(`{"query":"post it"}`)})
	mustRun(t, old, executor.RunRequest{Account: "acme", StateKey: "over", Graph: "inproc:letter", Input: json.RawMessage(`{"text":"x"}`)})
	if err := old.Cancel(t.Context(), "acme", "over", by("ann")); err != nil {
		t.Fatal(err)
	}

	if seen, why := unresumable(t, old); seen != 3 || len(why) != 0 {
		t.Errorf("the same program: %d seen, %v", seen, why)
	}
	seen, why := unresumable(t, executorOf(t, s, build(t, "seal", clerk(t)), nil))
	if _, changed := errors.AsType[*graph.ProgramChangedError](why["acme/letter"]); seen != 3 || len(why) != 2 || !changed || !strings.Contains(why["other/letter"].Error(), "node:sign") {
		t.Errorf("without a node: %d seen, %v", seen, why)
	}
	if _, why := unresumable(t, executorOf(t, s, build(t, "sign"), nil)); len(why) != 1 || !errors.Is(why["acme/chat"], executor.ErrGraphNotFound) {
		t.Errorf("without a graph: %v", why)
	}
	none := executorOf(t, s, build(t, "sign"), func(c *executor.Config) { c.Providers = nil })
	if _, why := unresumable(t, none); len(why) != 3 || !errors.Is(why["acme/letter"], executor.ErrGraphNotFound) {
		t.Errorf("without the provider: %v", why)
	}
	// The check did not change the runs.
	outcome := mustRun(t, old, executor.RunRequest{Account: "acme", StateKey: "letter", ResumeID: "1", Actor: "ann", Value: json.RawMessage(`"ok"`)})
	completed(t, outcome)
}

// sealedOtherwise is a store whose open requests were asked by another program with another answer
// schema.
type sealedOtherwise struct {
	store.Store
	form string
}

func (s sealedOtherwise) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	asked, err := s.Store.Interrupts(ctx, account, run)
	for n := range asked {
		asked[n].AnswerSchema = []byte(s.form)
	}
	return asked, err
}

// A request is still asked, but its answer schema has changed: an answer to the shown request would
// be rejected.
func TestCheck_ReportsChangedAnswerSchema(t *testing.T) {
	s := memory.NewStore(nil)
	e := executorOf(t, s, build(t, "sign"), nil)
	mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "letter", Graph: "inproc:letter", Input: json.RawMessage(`{"text":"x"}`)})
	if _, why := unresumable(t, e); len(why) != 0 {
		t.Errorf("the same program: %v", why)
	}
	other := executorOf(t, sealedOtherwise{s, `{"type":"integer"}`}, build(t, "sign"), nil)
	if _, why := unresumable(t, other); !errors.Is(why["acme/letter"], executor.ErrAnswerSchemaChanged) {
		t.Errorf("another answer schema: %v", why)
	}
}

// A schema that adds optional fields accepts every answer that the old one accepted. Regression:
// such a change was reported for all open approvals when rejection codes were added.
func TestCheck_SchemaThatAcceptsMoreIsCompatible(t *testing.T) {
	s := memory.NewStore(nil)
	d := new(dropper)
	startDrop(t, d.executor(t, s, nil))
	const (
		verb    = `"verb":{"type":"string","enum":["approve","reject","expire"]}`
		rest    = `"args":true,"reason":{"type":"string"},"by":{"type":"string"},"at":{"type":"string"}`
		strict  = `"additionalProperties":false`
		written = `{"type":"object","properties":{%s},"required":["verb"],%s}`
	)
	for name, c := range map[string]struct {
		form  string
		other bool
	}{
		"field added":                  {fmt.Sprintf(written, verb+","+rest, strict), false},
		"choice added":                 {fmt.Sprintf(written, `"verb":{"type":"string","enum":["reject"]},`+rest, strict), false},
		"field became optional":        {fmt.Sprintf(`{"type":"object","properties":{%s},"required":["verb","reason"],%s}`, verb+","+rest, strict), false},
		"description changed":          {fmt.Sprintf(written, verb+`,"reason":{"type":"string","description":"why not"}`, strict), false},
		"field removed":                {fmt.Sprintf(written, verb+`,"retry":{"type":"boolean"},`+rest, strict), true},
		"choice removed":               {fmt.Sprintf(written, `"verb":{"type":"string","enum":["approve","later"]},`+rest, strict), true},
		"field became required":        {fmt.Sprintf(`{"type":"object","properties":{%s},%s}`, verb+","+rest, strict), true},
		"type of a field changed":      {fmt.Sprintf(written, verb+`,"reason":{"type":"integer"}`, strict), true},
		"new field had no restriction": {fmt.Sprintf(written, verb+","+rest, `"additionalProperties":true`), true},
		"choices had no restriction":   {fmt.Sprintf(written, `"verb":{"type":"string"},`+rest, strict), true},
		"schema was a string":          {`{"type":"string"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, why := unresumable(t, d.executor(t, sealedOtherwise{s, c.form}, nil))
			if got := errors.Is(why["acme/drop-1"], executor.ErrAnswerSchemaChanged); got != c.other {
				t.Errorf("incompatible: %v, %v", got, why)
			}
		})
	}
}
