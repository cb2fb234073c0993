package teams_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/teams"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
)

// workflow is a loopback workflow that rejects what Teams rejects.
func workflow(t *testing.T) (c *teams.Channel, posts *[]map[string]any) {
	t.Helper()
	posts = new([]map[string]any)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct {
			Type        string `json:"type"`
			Attachments []struct {
				ContentType string         `json:"contentType"`
				Content     map[string]any `json:"content"`
			} `json:"attachments"`
		}
		if len(body) > 28<<10 || json.Unmarshal(body, &message) != nil || message.Type != "message" || len(message.Attachments) != 1 || message.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		content := message.Attachments[0].Content
		if content["type"] != "AdaptiveCard" || content["version"] != "1.4" || len(content["body"].([]any)) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		*posts = append(*posts, content)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(s.Close)
	c, err := teams.New(teams.Config{Webhooks: map[string]string{"ops": s.URL + "/workflows/1"}, Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, posts
}

func message() channel.Message {
	return channel.Message{Account: "acme", Delivery: "d1", Attempt: 1, Kind: desk.NoticeNotify, To: "ops", Card: channel.Card{
		Request: "int_1", State: desk.StateOpen, Link: "https://fermata.example/requests/int_1",
		Presentation: api.Presentation{
			Title: "refund: amount 120.00", Sentence: "support-bot wants to run refund",
			Facts:    []api.Fact{{Label: "amount", Value: "120.00"}},
			Evidence: []api.Evidence{{Title: "Order", Source: "shop", Text: "17: 1 cup", Was: "17: 2 cups"}},
			Said:     []api.Quote{{By: "shop", Text: "[Approve here](https://evil.example) **now**"}},
		},
		Risk: 3, Deadline: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), At: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC),
	}}
}

func TestSend_CardWithFactsAndLink(t *testing.T) {
	c, posts := workflow(t)
	ref, err := c.Send(t.Context(), message())
	if err != nil || ref == "" {
		t.Fatal(ref, err)
	}
	text, _ := json.Marshal((*posts)[0])
	for _, want := range []string{"120.00", "https://fermata.example/requests/int_1", "Sign in and decide", "17: 1 cup", "before: 17: 2 cups", "risk: high", "2 h 0 min left"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(string(text), "https://evil.example") || strings.Contains(string(text), "](") || strings.Contains(string(text), "**now") {
		t.Errorf("text of the agent is markup: %s", text)
	}
}

func TestSend_OutcomeIsPostedOnceAndOtherChangesAreNot(t *testing.T) {
	c, posts := workflow(t)
	m := message()
	ref, err := c.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	m.Kind, m.Ref = desk.NoticeRerender, ref
	if m.Ref, err = c.Send(t.Context(), m); err != nil || len(*posts) != 1 {
		t.Fatalf("after a vote there are %d cards: %v", len(*posts), err)
	}
	m.Card.State, m.Card.Outcome = desk.StateDecided, "approved by ann"
	for range 2 {
		if m.Ref, err = c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := json.Marshal((*posts)[len(*posts)-1]); len(*posts) != 2 || !strings.Contains(string(text), "approved by ann") {
		t.Errorf("%d cards, the last is %s", len(*posts), text)
	}
}

// A reminder in a conversation that has the card is short, and does not get the outcome.
func TestSend_ReminderIsShortAndHasNoOutcomeOfItsOwn(t *testing.T) {
	c, posts := workflow(t)
	m := message()
	m.Kind, m.Again = desk.NoticeRemind, true
	ref, err := c.Send(t.Context(), m)
	text, _ := json.Marshal((*posts)[0])
	if err != nil || ref != "" || !strings.Contains(string(text), "Reminder: ") || !strings.Contains(string(text), "Sign in and decide") || strings.Contains(string(text), "17: 1 cup") {
		t.Errorf("%q %v %s", ref, err, text)
	}
	m.Again = false // nothing was posted before
	if ref, err = c.Send(t.Context(), m); err != nil || ref == "" {
		t.Errorf("%q %v", ref, err)
	}
}

func TestSend_LongCardsFit(t *testing.T) {
	c, _ := workflow(t)
	m := message()
	for range 100 {
		m.Card.Facts = append(m.Card.Facts, api.Fact{Label: strings.Repeat("l", 1000), Value: strings.Repeat("é", 5000)})
	}
	for range 20 {
		m.Card.Evidence = append(m.Card.Evidence, api.Evidence{Title: strings.Repeat("é", 5000), Text: strings.Repeat("é", 5000)})
	}
	m.Card.Said[0].Text = strings.Repeat("*", 100_000)
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Error(err)
	}
}

func TestNew_BadConfig(t *testing.T) {
	for _, config := range []teams.Config{{}, {Webhooks: map[string]string{"ops": "http://10.0.0.1/"}}, {Webhooks: map[string]string{"ops": "https://a.example/"}, Allow: []string{"a b"}}} {
		if _, err := teams.New(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
	c, _ := workflow(t)
	m := message()
	m.To = "other"
	if _, err := c.Send(t.Context(), m); !channelerror.IsPermanent(err) {
		t.Errorf("an unknown target: %v", err)
	}
}
