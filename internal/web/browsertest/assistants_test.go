package browsertest

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// A person chooses one of several assistants. Its action waits for an approver; the page says so,
// and shows the answer afterwards without a reload.
func TestChat_AnswerOfAChosenAssistantFollowsTheApproval(t *testing.T) {
	testtier.Needs(t, "Chromium")
	refund := tool.Approve(tool.New("refund", "Refunds an order.", func(context.Context, struct{}) (string, error) { return "done", nil }))
	var graphs []inproc.Graph
	for name, model := range map[string]agent.Model{"writer": script.New(script.Say("Written.")), "support": script.New(script.Call("refund", "{}"), script.Say("It is refunded."))} {
		a, err := agent.NewChat(agent.Chat{Name: name, Model: model, Tools: []*tool.Tool{refund}})
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, inproc.Agent(agent.RunnerConfig{Agent: a}))
	}
	s := webtest.Open(t, webtest.Config{Graphs: graphs, Assistants: []dialog.Assistant{
		{ID: "writer", Title: "Writer", Description: "Rewrites texts in plain language.", Graph: "inproc:writer"},
		{ID: "support", Title: "Support", Description: "Answers questions about orders, and refunds them completely or in part.", Graph: "inproc:support"},
	}, Site: func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) }})
	b := openTab(t, s, "ada", phone)
	b.open("/chat")
	b.check("choice-phone")
	b = openTab(t, s, "ada", desk)
	b.open("/chat")
	b.check("choice")
	b.do(chromedp.Click(`.assistants input[value=support]`))
	b.say("refund my order")
	b.waitText("Another person has to decide first.")
	b.check("held")
	conversations, err := s.Dialog.List(t.Context(), webtest.Account, "ada")
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.Dialog.Peek(t.Context(), webtest.Account, conversations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	run := record.Runs[0].Run
	view, err := s.Executor.GetRun(t.Context(), webtest.Account, run)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Executor.Run(t.Context(), executor.RunRequest{Account: webtest.Account, StateKey: run, ResumeID: "1", Actor: "bob", Targets: map[string]executor.Answer{view.Interrupts[0].ID: {Value: json.RawMessage(`{"verb":"approve"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dialog.Advance(t.Context(), webtest.Account, record.ID); err != nil { // a server does it every few seconds
		t.Fatal(err)
	}
	b.waitText("It is refunded.")
}
