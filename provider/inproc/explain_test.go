package inproc_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/provider/providertest"
	"github.com/fermata-go/fermata/tool"
)

// clerk is an agent that wants to drop something, and has a model for clarifications.
func clerk(t *testing.T, options ...inproc.AgentOption) *inproc.Provider {
	t.Helper()
	a, err := agent.NewChat(agent.Chat{
		Name: "clerk", Model: script.New(script.Call("drop", `{"text":"users"}`)), Tools: []*tool.Tool{worker(new(providertest.World), "drop", "dropped")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return newProvider(t, inproc.Agent(agent.RunnerConfig{Agent: a}, options...))
}

// asksBack makes an agent wait, and sends it a clarification.
func asksBack(t *testing.T, p *inproc.Provider) (string, error) {
	t.Helper()
	e := execution(t, "clerk", `{"query":"Clean up."}`)
	result, err := p.Execute(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	waiting, ok := result.Outcome.(provider.Waiting)
	if !ok {
		t.Fatalf("it came to %#v", result.Outcome)
	}
	q := waiting.Interrupts[0]
	return p.Explain(t.Context(), e.Run, provider.Clarification{
		InterruptID: q.ID, Envelope: fermata.Envelope{Kind: q.Kind, Data: q.Data}, Input: e.Input, Number: 1, Text: "Is there a copy?", By: "ann",
	})
}

func TestExplain_ModelAnswersTheClarification(t *testing.T) {
	said := script.Say("that it has stopped") // the agent's part of the conversation
	p := clerk(t, inproc.Explain(script.New(said, func(request *agent.Request) (agent.Message, error) {
		var all strings.Builder
		for _, m := range request.Messages {
			all.WriteString(string(m.Role) + ": " + m.Text + "\n")
		}
		for _, part := range []string{"user: Clean up.", `"users"`, "Is there a copy?"} {
			if !strings.Contains(all.String(), part) {
				t.Errorf("the model does not get %q in\n%s", part, all.String())
			}
		}
		if len(request.Tools) > 0 {
			t.Error("it could do something")
		}
		return agent.Assistant("Yes, of last night."), nil
	})))
	if text, err := asksBack(t, p); err != nil || text != "Yes, of last night." {
		t.Errorf("%q, %v", text, err)
	}
}

func TestExplain_AnAgentWithoutAModelForItIsSilent(t *testing.T) {
	if text, err := asksBack(t, clerk(t)); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
