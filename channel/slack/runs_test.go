package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	"github.com/fermata-go/fermata/internal/timespan"
)

// design is the state of a run with a gate.
type design struct {
	Draft     int           `json:"draft"`
	Decisions []gate.Record `json:"decisions,omitempty"`
}

// gated returns a graph that drafts a design until it is approved.
func gated() (*graph.Flow[design], error) {
	g := graph.New[design]("pipeline")
	g.Node("draft", func(_ context.Context, s design) (design, error) {
		s.Draft++
		return s, nil
	})
	g.Node("build", func(_ context.Context, s design) (design, error) { return s, nil })
	gate.Approval[design]{
		ID: "design_approval", Message: "Review the design", Forward: "build", Backward: "draft",
		Status:    func(s design) string { return fmt.Sprint("draft number ", s.Draft) },
		Decisions: func(s *design) *[]gate.Record { return &s.Decisions },
	}.Add(g, "approve")
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "approve")
	g.Edge("build", graph.End)
	return g.Compile()
}

const everyRun = `
- {id: runs, when: "true", then: ask, ask: {groups: [{from: ["group:finops"]}], on_timeout: reject, deadline: 24h%s}}`

// openRuns is an office whose executor posts every request to Slack.
func openRuns(t *testing.T, keys string) *office {
	t.Helper()
	return openOfficeWith(t, nil, func(o *office, c *executor.DeskConfig) {
		c.Policy = rules(t, fmt.Sprintf(everyRun, keys))
		c.Channels = []channel.Channel{current{o}}
		c.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"slack:" + o.ops}}, {At: timespan.Duration(48 * time.Hour), Expire: "stale"}}}}
		c.BaseURL = "https://fermata.example"
	})
}

func (o *office) start(graph, key, input string) {
	o.tb.Helper()
	if _, err := o.as("requester", authn.RoleAgent).Start(context.Background(), graph, key, json.RawMessage(input)); err != nil {
		o.tb.Fatal(err)
	}
}

// message waits for a message with a text and a button.
func (o *office) message(t *testing.T, text, button string) (found slackfake.Message) {
	t.Helper()
	until(t, "a message with "+text+" and "+button, func() bool {
		all := o.Messages(o.ops)
		i := slices.IndexFunc(all, func(m slackfake.Message) bool {
			return strings.Contains(string(m.Blocks), text) && slices.Contains(labels(t, m.Blocks), button)
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

func (o *office) clickAt(user, ts, action string) {
	o.tb.Helper()
	if _, err := o.Click(context.Background(), user, o.ops, ts, action); err != nil {
		o.tb.Fatal(err)
	}
	o.process()
}

// output waits for the end of a run.
func (o *office) output(t *testing.T, key string) (out string) {
	t.Helper()
	until(t, key+" ends", func() bool {
		view, err := o.as("auditor", authn.RoleAdmin).Run(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		done, ok := view.Outcome.(fermata.Completed)
		out = string(done.Output)
		return ok
	})
	return out
}

// A rejected gate takes the backward route with the reason, and the next draft has a message of its
// own. An approved one takes the forward route.
func TestRoundTrip_GateIsRejectedAndApproved(t *testing.T) {
	o := openRuns(t, "")
	o.start("inproc:pipeline", "k", `{}`)
	first := o.message(t, "draft number 1", "Approve")
	wantContains(t, string(first.Blocks), "waits for approval: Review the design")
	o.clickAt(o.alice, first.TS, "reject")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "one queue is enough"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	second := o.message(t, "draft number 2", "Approve")
	o.clickAt(o.alice, second.TS, "approve")
	wantContains(t, o.output(t, "k"), "one queue is enough", `"draft":2`)
}

// In the undo window the message says when the decision takes effect. After an undo it can be
// decided again.
func TestRoundTrip_UndoWindow(t *testing.T) {
	o := openRuns(t, ", undo: 10m")
	o.start("inproc:dataops", "k", `{"request":"forget customer 42"}`)
	o.clickAt(o.alice, o.message(t, "forget customer 42", "Approve").TS, "approve")
	m := o.message(t, "Takes effect at", "Undo")
	wantContains(t, string(m.Blocks), "approved by ann, not in effect yet. ann can undo it.")
	if slices.Contains(labels(t, m.Blocks), "Approve") {
		t.Error("a pending decision can be made again")
	}
	o.clickAt(o.alice, m.TS, "undo")
	if again := o.message(t, "forget customer 42", "Approve"); again.TS != m.TS {
		t.Error("the message was not replaced")
	}
}
