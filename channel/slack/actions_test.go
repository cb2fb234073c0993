package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/slackfake"
)

// rules returns a policy.
func rules(t *testing.T, list string) *policy.Set {
	t.Helper()
	p, err := policy.Load("policy.yaml", []byte("default: allow\ntools:\n  refund: {risk: 1}\n  transfer: {risk: 3}\nrules:"+list+"\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withRule opens an office whose rule asks for a refund with some keys.
func withRule(t *testing.T, keys string) *office {
	t.Helper()
	return openOfficeWith(t, nil, func(_ *office, c *executor.DeskConfig) {
		c.Policy = rules(t, `
- {id: refunds, when: req.tool == "refund", then: ask, ask: {groups: [{from: ["group:finops"]}], deadline: 1h, `+keys+`}}`)
	})
}

// repost posts the current state of a request.
func (o *office) repost(id string) slackfake.Message {
	o.tb.Helper()
	c := o.card(id)
	if p := o.request(id).Activity.Pending; p != nil {
		c.Pending = p
	}
	o.send(o.tb, channel.Message{Account: account, Delivery: "again-" + id, Attempt: 1, To: o.ops, Card: c})
	all := o.Messages(o.ops)
	return all[len(all)-1]
}

func TestReview_MainOptionIsOneClickAndOthersTakeFeedback(t *testing.T) {
	o := openOffice(t, nil)
	ask := api.CreateRequest{
		Kind:         "content-review",
		Data:         json.RawMessage(`{"message":"Ready for review","draft":"Five things about tea.","suggestedActions":[{"label":"Approve & publish","action":"approve","isPrimary":true},{"label":"Revise","action":"revise"}]}`),
		AnswerSchema: json.RawMessage(`{"type":"object","required":["action"],"properties":{"action":{"enum":["approve","revise","reject"]},"feedback":{"type":"string"}}}`),
	}
	first := o.ask(ask)
	m := o.only(t, o.ops)
	wantContains(t, string(m.Blocks), "Five things about tea.")
	if got := labels(t, m.Blocks); !slices.Equal(got[:3], []string{"Approve & publish", "Revise", "Reject"}) {
		t.Fatalf("buttons %q", got)
	}
	o.click(o.alice, "respond")
	if d := o.request(first).Decision; d == nil || string(d.Answer) != `{"action":"approve"}` || d.By != "ann" {
		t.Fatalf("decision %+v", d)
	}
	ask.StateKey, ask.AllowDuplicate = "second", true
	second := o.ask(ask)
	o.click(o.alice, "respond_2")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "a picture"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	if d := o.request(second).Decision; d == nil || string(d.Answer) != `{"action":"revise","feedback":"a picture"}` {
		t.Fatalf("decision %+v", d)
	}
}

func TestChoice_EachOptionIsAButtonWithItsDetail(t *testing.T) {
	o := openOffice(t, nil)
	id := o.ask(api.CreateRequest{Kind: "choice", Data: json.RawMessage(`{"question":"Which backup?","options":[{"id":"02:00","label":"Last night","detail":"loses six hours"},{"id":"none","label":"None"}]}`),
		AnswerSchema: json.RawMessage(`{"type":"object","required":["choice"],"properties":{"choice":{"type":"string"}}}`)})
	m := o.only(t, o.ops)
	wantContains(t, string(m.Blocks), "Last night: answers 02:00; loses six hours")
	if strings.Contains(string(m.Blocks), `{\"id\"`) {
		t.Errorf("the options are JSON: %s", m.Blocks)
	}
	o.click(o.alice, "respond_2")
	if d := o.request(id).Decision; d == nil || string(d.Answer) != `{"choice":"none"}` {
		t.Fatalf("decision %+v", d)
	}
}

func TestReturn_GivesTheReason(t *testing.T) {
	o := withRule(t, "on_escalate: return")
	id := o.refund()
	if got := labels(t, o.only(t, o.ops).Blocks); slices.Contains(got, "Escalate") || !slices.Contains(got, "Return for redesign…") {
		t.Fatalf("buttons %q", got)
	}
	o.click(o.alice, "return")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "half of it"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "return", "ann")
	wantContains(t, string(o.request(id).Decision.Answer), "half of it")
}

// The voter withdraws a decision that is not in effect yet. The click of another person does not
// count.
func TestUndo_WithdrawsThePendingDecision(t *testing.T) {
	o := withRule(t, "undo: 10m")
	bob := o.AddUser("bob")
	o.Join(o.ops, bob)
	o.links[o.Team()+"/"+bob] = "bob"
	id := o.refund()
	o.click(o.alice, "approve")
	if p := o.request(id).Activity.Pending; p == nil || p.By != "ann" {
		t.Fatalf("pending %+v", p)
	}
	o.click(bob, "approve")
	wantContains(t, o.told(bob), "A decision was made and is still pending", "!date^")
	m := o.repost(id)
	wantContains(t, string(m.Blocks), "ann can undo it", "Takes effect at", "!date^")
	if got := labels(t, m.Blocks); !slices.Equal(got, []string{"Undo", "Open in inbox"}) {
		t.Fatalf("buttons %q", got)
	}
	o.click(bob, "undo")
	wantContains(t, o.told(bob), "This was not counted.")
	if o.request(id).Activity.Pending == nil {
		t.Fatal("bob withdrew the decision of ann")
	}
	o.click(o.alice, "undo")
	if p := o.request(id).Activity.Pending; p != nil {
		t.Fatalf("pending %+v", p)
	}
	if _, err := o.Click(t.Context(), o.alice, o.ops, m.TS, "undo"); err != nil { // the copy is not replaced yet
		t.Fatal(err)
	}
	o.process()
	wantContains(t, o.told(o.alice), "There is no pending decision to withdraw.")
	o.wantDecision(id, "", "")
}

func TestSend_EvidenceIsOnTheCard(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	c.Risk = 3
	c.Evidence = []api.Evidence{{Title: "Rows", Source: "warehouse", Text: "48213", Was: "12"}, {Title: "Ticket", Text: "OPS-1", URL: "https://tickets.example/1"}}
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	m := w.only(t, w.ops)
	wantContains(t, string(m.Blocks), "Rows (source: warehouse), at the last approval", "48213", "12", "OPS-1", "https://tickets.example/1", "Risk: high", `"confirm"`)
	if got := labels(t, m.Blocks); !slices.Contains(got, "Approve") {
		t.Errorf("buttons %q", got)
	}
}

// Evidence that does not fit may not be missing in an approval: neither text that is too long, nor
// too many entries.
func TestSend_EvidenceThatDoesNotFitLeavesReject(t *testing.T) {
	for name, evidence := range map[string][]api.Evidence{
		"long": {{Title: "Log", Text: strings.Repeat("x", 3001)}},
		"was":  {{Title: "Log", Text: "x", Was: strings.Repeat("x", 3001)}},
		"many": slices.Repeat([]api.Evidence{{Title: "Log", Text: "x"}}, 20),
	} {
		w := openWorkspace(t, slackfake.Config{}, nil)
		c := card("r1")
		c.Evidence = evidence
		w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
		if got := labels(t, w.only(t, w.ops).Blocks); !slices.Equal(got, []string{"Reject…", "Open in inbox", "Escalate", "Ask the agent…"}) {
			t.Errorf("%s: buttons %q", name, got)
		}
	}
}

// Many options are in blocks of five buttons.
func TestSend_ManyOptions(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	c.Actions = nil
	for i := range 8 {
		c.Actions = append(c.Actions, api.Action{Name: "respond", Label: fmt.Sprint("Option ", i), Answer: json.RawMessage(fmt.Sprint(i))})
	}
	c.Actions = append(c.Actions, api.Action{Name: "respond", Label: "Too long", Answer: json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)})
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	m := w.only(t, w.ops)
	var blocks []struct {
		Type     string
		Elements []json.RawMessage
	}
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Type == "actions" && len(b.Elements) > 5 {
			t.Errorf("%d elements in a block", len(b.Elements))
		}
	}
	if got := labels(t, m.Blocks); len(got) != 9 || got[8] != "Open in inbox" {
		t.Errorf("buttons %q", got)
	}
	wantContains(t, string(m.Blocks), "Some answers are too long for Slack")
}

// A modal repeats what the decision is about, also long texts, and its text is recorded.
func TestModal_RecordsWhatItShows(t *testing.T) {
	o := openOffice(t, nil)
	long := strings.Repeat("parcel ", 60)
	id := o.ask(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":120,"note":"` + long + `"},"argsSchema":{"type":"object","properties":{"amount":{"type":"integer"},"note":{"type":"string"}}},"evidence":[{"title":"Stock","text":"none left"}]}`)})
	for _, action := range []string{"edit", "reject", "ask"} {
		if action == "ask" {
			action = "more/ask " + id
		}
		o.click(o.alice, action)
		v, open := o.OpenView(o.alice)
		if !open {
			t.Fatalf("%s: no modal; told %s", action, o.told(o.alice))
		}
		wantContains(t, string(v.Blocks), long, "none left", "wants to refund")
		o.CloseView(o.alice)
	}
	o.click(o.alice, "reject")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "late"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "reject", "ann")
	seen := o.request(id).Activity.Renderings
	if len(seen) != 1 || seen[0].Template != "modal@2" {
		t.Errorf("recorded %+v", seen)
	}
}

// Every problem of the API gets an answer: at once if a repetition does not help, otherwise after
// the last one.
func TestClick_EveryProblemIsAnswered(t *testing.T) {
	for _, code := range problems.Codes {
		t.Run(code.Code, func(t *testing.T) {
			o := openOffice(t, nil)
			o.refund()
			o.send1(o.alice, "approve")
			in := o.pending[0]
			stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(code.Status)
				_ = json.NewEncoder(w).Encode(problems.New(code.Code, "Detail of %s.", code.Code).Problem)
			}))
			defer stub.Close()
			o.url = stub.URL
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := o.channel.Receive(ctx, o, in)
			temporary := code.Code != "unreadable" && (code.Status >= 500 || code.Status == http.StatusTooManyRequests)
			if temporary != (err != nil) {
				t.Fatalf("error %v", err)
			}
			if temporary {
				in.Last = true
				if err := o.channel.Receive(ctx, o, in); err == nil {
					t.Fatal("no error at the last attempt")
				}
			}
			if told := o.told(o.alice); !strings.Contains(told, "not counted") && !strings.Contains(told, "does not exist") {
				t.Errorf("told %q", told)
			}
		})
	}
}

// A person of a later stage is told to wait for the earlier one.
func TestClick_BeforeAnEarlierStageIsAnswered(t *testing.T) {
	o := openOfficeWith(t, nil, func(_ *office, c *executor.DeskConfig) {
		c.Policy = rules(t, `
- {id: refunds, when: req.tool == "refund", then: ask, ask: {groups: [{from: ["user:ann"]}, {from: ["user:bob"], stage: 1}], deadline: 1h}}`)
	})
	id := o.refund()
	o.links[o.Team()+"/"+o.alice] = "bob"
	for _, action := range []string{"approve", "reject"} {
		o.click(o.alice, action)
		wantContains(t, o.told(o.alice), "An earlier stage has to agree first")
	}
	o.wantDecision(id, "", "")
}

// A button of an earlier version has no answer.
func TestClick_OfAnEarlierVersionIsAnswered(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	payload, err := o.ClickPayload(o.alice, o.ops, o.only(t, o.ops).TS, "approve")
	if err != nil {
		t.Fatal(err)
	}
	var click map[string]any
	if err := json.Unmarshal(payload, &click); err != nil {
		t.Fatal(err)
	}
	click["actions"].([]any)[0].(map[string]any)["value"] = `{"r":"` + id + `","v":1,"d":"x"}`
	text, err := json.Marshal(click)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(url.Values{"payload": {string(text)}}.Encode())
	if d, err := o.Post(t.Context(), o.endURL+"/channels/slack/interactivity", o.Sign(body, time.Now(), o.SigningSecret()), body); err != nil || d.Status != http.StatusOK {
		t.Fatalf("%+v, %v", d, err)
	}
	o.process()
	wantContains(t, o.told(o.alice), "has changed since")
	o.wantDecision(id, "", "")
}

func TestCommand_ListsTheHighestRiskFirst(t *testing.T) {
	o := openOfficeWith(t, nil, func(_ *office, c *executor.DeskConfig) {
		c.Policy = rules(t, `
- {id: all, when: req.tool == "refund" || req.tool == "transfer", then: ask, ask: {groups: [{from: ["group:finops"]}], deadline: 1h}}`)
	})
	o.refund()
	o.create(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"transfer","args":{"amount":1}}`)})
	if d, err := o.Command(t.Context(), o.alice, o.ops, "/fermata", ""); err != nil || d.Status != http.StatusOK {
		t.Fatalf("%+v, %v", d, err)
	}
	o.process()
	told := o.told(o.alice)
	wantContains(t, told, "Transfer amount 1, high risk", "Refund on order 17, amount 120, low risk")
	if strings.Index(told, "Transfer") > strings.Index(told, "Refund") {
		t.Errorf("order: %s", told)
	}
}
