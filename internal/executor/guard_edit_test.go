package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

type mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// Under Guard the arguments are editable exactly where the policy of the server allows it.
func TestGuard_PolicyMakesArgumentsEditable(t *testing.T) {
	const rule = "default: deny\nrules:\n- {id: mail, when: 'req.tool == \"send\"', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h"
	const text, to = `{"to":"bob","text":"bye"}`, `{"to":"eve","text":"hi"}`
	guard := func(t *tool.Tool) *tool.Tool { return tool.Guard(t, nil) }
	for name, c := range map[string]struct {
		rules   string
		wrap    func(*tool.Tool) *tool.Tool
		edit    string
		allowed bool
	}{
		"editable":           {rule + ", editable: [/text]}}\n", guard, text, true},
		"another argument":   {rule + ", editable: [/text]}}\n", guard, to, false},
		"not by the schema":  {rule + ", editable: [/text]}}\n", guard, `{"to":"bob","text":7}`, false},
		"nothing editable":   {rule + "}}\n", guard, text, false},
		"no policy":          {"", guard, text, false},
		"approve is fixed":   {rule + ", editable: [/text]}}\n", func(t *tool.Tool) *tool.Tool { return tool.Approve(t) }, text, false},
		"guard over approve": {rule + ", editable: [/text]}}\n", func(t *tool.Tool) *tool.Tool { return tool.Guard(tool.Approve(t), nil) }, text, false},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []mail
			send := tool.New("send", "Sends a mail.", func(_ context.Context, m mail) (string, error) {
				sent = append(sent, m)
				return "sent", nil
			})
			clerk, err := agent.NewChat(agent.Chat{Name: "clerk", Model: script.New(script.Call("send", `{"to":"bob","text":"hi"}`), script.Say("done")), Tools: []*tool.Tool{c.wrap(send)}})
			if err != nil {
				t.Fatal(err)
			}
			p, err := inproc.New(inproc.Agent(agent.RunnerConfig{Agent: clerk}))
			if err != nil {
				t.Fatal(err)
			}
			e := executorOf(t, memory.NewStore(nil), p, func(config *executor.Config) {
				if c.rules != "" {
					config.Desk.Policy = loadRules(t, c.rules)
				}
			})
			asked := waits(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "k", Graph: "inproc:clerk", Input: json.RawMessage(`{"query":"send it"}`), Actor: "ann"}))
			say := func(resume, answer string) (fermata.Outcome, error) {
				request := executor.DecideRequest{
					Account: "acme", ResumeID: resume, Actor: "bob", Auth: requirement.AuthSSO,
					Targets: map[string]executor.Answer{asked.Interrupts[0].ID: {Value: json.RawMessage(answer)}},
				}
				return e.Decide(t.Context(), request)
			}
			outcome, err := say("1", `{"verb":"approve","args":`+c.edit+`}`)
			want := []mail{{"bob", "bye"}}
			if !c.allowed {
				_, invalid := errors.AsType[*fermata.AnswerError](err)
				if !invalid && !errors.Is(err, desk.ErrInvalidEdit) {
					t.Errorf("the edit: %v", err)
				}
				outcome, err = say("2", `{"verb":"approve"}`)
				want = []mail{{"bob", "hi"}}
			}
			if err != nil {
				t.Fatal(err)
			}
			completed(t, outcome)
			if !slices.Equal(sent, want) {
				t.Errorf("sent %v, want %v", sent, want)
			}
		})
	}
}
