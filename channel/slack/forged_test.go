package slack_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/adversarialtext"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/slackfake"
)

// Every forged payload, as an argument and as the text of the agent, gives a message that Slack
// accepts. It is never in markup, marked characters are flagged, and it adds no controls.
func TestSend_ForgedPayloads(t *testing.T) {
	plain := forgedCard(t, json.RawMessage(`"ok"`), "ok")
	w := openWorkspace(t, slackfake.Config{}, nil)
	w.send(t, channel.Message{Delivery: "d", Attempt: 1, To: w.ops, Card: plain})
	want := strings.Join(labels(t, w.only(t, w.ops).Blocks), ",")
	for _, p := range adversarialtext.All() {
		t.Run(p.Name, func(t *testing.T) {
			w := openWorkspace(t, slackfake.Config{}, nil)
			c := forgedCard(t, p.Value, p.Text)
			w.send(t, channel.Message{Delivery: "d", Attempt: 1, To: w.ops, Card: c})
			m := w.only(t, w.ops)
			for _, text := range markup(t, m.Blocks) {
				if !strings.HasPrefix(text, "Expires <!date^") {
					t.Errorf("markup %q", text)
				}
			}
			got := labels(t, m.Blocks)
			if all := strings.Join(got, ","); all != want && strings.Contains(all, "Approve") {
				t.Errorf("controls %q; want %q, or none that approve", all, want)
			}
			if p.Flag && !strings.Contains(string(m.Blocks), "unusual characters") {
				t.Errorf("not flagged: %s", m.Blocks)
			}
		})
	}
}

// forgedCard is a request with a forged argument and summary.
func forgedCard(t *testing.T, value json.RawMessage, said string) channel.Card {
	t.Helper()
	data, err := json.Marshal(fermata.ApprovalRequest{Action: "refund", Args: json.RawMessage(`{"amount":1,"note":` + string(value) + `}`), Summary: said})
	if err != nil {
		t.Skip(err) // the API does not accept it either
	}
	now := time.Now()
	change, err := desk.New(desk.RequestSpec{
		ID: "int_1", Requirement: requirement.OnePerson(), Args: json.RawMessage(`{"amount":1}`),
		Subject: desk.Subject{Kind: fermata.Approval.Name(), ShownDigest: "shown", Action: "refund", ActionDigest: "d", Requester: "bot"},
	}, desk.Env{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return channel.NewCard(channel.Source{Request: change.Request, Data: data, Agent: "bot", BaseURL: "https://fermata.example", Now: now})
}
