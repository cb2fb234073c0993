package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/server/authn"
)

func (o *office) wantDecision(id, verdict, by string) {
	o.tb.Helper()
	r := o.request(id)
	if verdict == "" {
		if r.Decision != nil {
			o.tb.Fatalf("decision %+v; want none", r.Decision)
		}
		return
	}
	if r.Decision == nil || r.Decision.Verdict != verdict || r.Decision.By != by {
		o.tb.Fatalf("decision %+v; want %s by %s", r.Decision, verdict, by)
	}
}

func TestClick_ApproveDecides(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	d := o.click(o.alice, "approve")
	if d.Elapsed > time.Second {
		t.Errorf("acknowledged after %v", d.Elapsed)
	}
	o.wantDecision(id, "approve", "ann")
	if seen := o.request(id).Activity.Renderings; len(seen) != 1 || seen[0].By != "ann" || seen[0].Channel != "slack" || seen[0].Template != "message@2" || seen[0].Visible != "" {
		t.Errorf("what ann saw: %+v", seen)
	}
	if told := o.told(o.alice); told != "" {
		t.Errorf("a click that counts got an answer: %s", told)
	}
}

func TestClick_IsStoredBeforeItIsAcknowledged(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	o.refuse = errors.New("the store is down")
	ts := o.only(t, o.ops).TS
	if d, err := o.Click(t.Context(), o.alice, o.ops, ts, "approve"); err != nil || d.Status != http.StatusServiceUnavailable {
		t.Fatalf("%+v, %v; want no acknowledgement", d, err)
	}
	o.refuse = nil
	o.send1(o.alice, "approve")
	o.reopen(t) // the process ends between the acknowledgement and the decision
	o.wantDecision(id, "", "")
	o.process()
	o.wantDecision(id, "approve", "ann")
}

func TestClick_FortyAtOnceMakeOneDecision(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	ts := o.only(t, o.ops).TS
	users := make([]string, 40)
	for i := range users {
		users[i] = o.AddUser(fmt.Sprint("u", i))
		o.Join(o.ops, users[i])
		o.links[o.Team()+"/"+users[i]] = "ann"
		if i%2 == 1 {
			o.links[o.Team()+"/"+users[i]] = "bob"
		}
	}
	var all sync.WaitGroup
	for _, user := range users {
		all.Go(func() {
			if d, err := o.Click(context.Background(), user, o.ops, ts, "approve"); err != nil || d.Status != http.StatusOK {
				t.Errorf("click: %+v, %v", d, err)
			}
		})
	}
	all.Wait()
	o.process()
	if r := o.request(id); r.Decision == nil || r.Decision.Verdict != "approve" {
		t.Fatalf("decision %+v", r.Decision)
	}
	late := 0
	for _, user := range users {
		if strings.Contains(o.told(user), "Too late") {
			late++
		}
	}
	if late != len(users)-1 {
		t.Errorf("%d clicks were told that they are late; want %d", late, len(users)-1)
	}
}

func TestClick_ReplayedStaleAndForged(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	d := o.send1(o.alice, "approve")
	for range 3 {
		if again, err := o.Replay(t.Context(), d); err != nil || again.Status != http.StatusOK {
			t.Fatalf("replay: %+v, %v", again, err)
		}
	}
	resigned := o.Sign(d.Body, time.Now().Add(time.Minute), o.SigningSecret())
	if again, err := o.Post(t.Context(), d.URL, resigned, d.Body); err != nil || again.Status != http.StatusOK {
		t.Fatalf("replay with another signature: %+v, %v", again, err)
	}
	if n := len(o.pending); n != 1 {
		t.Fatalf("%d stored clicks; want one", n)
	}
	o.process()
	o.wantDecision(id, "approve", "ann")

	stored := len(o.known)
	good := o.Sign(d.Body, time.Now(), o.SigningSecret())
	tampered := []byte(strings.Replace(string(d.Body), o.alice, "U0MALLORY", 1))
	empty := good.Clone()
	empty.Set("X-Slack-Signature", "")
	noPrefix := good.Clone()
	noPrefix.Set("X-Slack-Signature", strings.TrimPrefix(good.Get("X-Slack-Signature"), "v0="))
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		want   int
	}{
		"old":             {o.Sign(d.Body, time.Now().Add(-301*time.Second), o.SigningSecret()), d.Body, http.StatusUnauthorized},
		"future":          {o.Sign(d.Body, time.Now().Add(310*time.Second), o.SigningSecret()), d.Body, http.StatusUnauthorized},
		"other secret":    {o.Sign(d.Body, time.Now(), "other"), d.Body, http.StatusUnauthorized},
		"empty secret":    {o.Sign(d.Body, time.Now(), ""), d.Body, http.StatusUnauthorized},
		"tampered":        {good, tampered, http.StatusUnauthorized},
		"no signature":    {http.Header{}, d.Body, http.StatusUnauthorized},
		"empty signature": {empty, d.Body, http.StatusUnauthorized},
		"no prefix":       {noPrefix, d.Body, http.StatusUnauthorized},
		"too large":       {good, make([]byte, 256<<10+1), http.StatusRequestEntityTooLarge},
		"foreign payload": {o.Sign([]byte("payload=%7B%7D1"), time.Now(), o.SigningSecret()), []byte("payload=%7B%7D1"), http.StatusBadRequest},
	} {
		if got, err := o.Post(t.Context(), d.URL, c.header, c.body); err != nil || got.Status != c.want {
			t.Errorf("%s: %+v, %v; want %d", name, got, err, c.want)
		}
	}
	if len(o.known) != stored {
		t.Error("a forged click was stored")
	}
}

func TestClick_ThatDoesNotCountIsAnswered(t *testing.T) {
	cases := []struct {
		name, want string
		prepare    func(o *office, id string) (user string)
	}{
		{"not linked", "not linked", func(o *office, _ string) string {
			user := o.AddUser("carol")
			o.Join(o.ops, user)
			return user
		}},
		{"no link can be made", "could not make a link", func(o *office, _ string) string {
			delete(o.links, o.Team()+"/"+o.alice)
			o.noLinks = errors.New("no public address")
			return o.alice
		}},
		{"not in the group", "This was not counted. You are not in a group that decides this.", func(o *office, _ string) string {
			o.links[o.Team()+"/"+o.alice] = "zoe"
			return o.alice
		}},
		{"requester", "This was not counted. Separation of duties excludes you from this decision: requester is its requester.", func(o *office, _ string) string {
			o.links[o.Team()+"/"+o.alice] = "requester"
			return o.alice
		}},
		{"too late", "Too late: already decided (reject) by bob", func(o *office, id string) string {
			_, err := o.as("bob", authn.RoleApprover).Decide(context.Background(), id, api.Decide{Answer: json.RawMessage(`{"verb":"reject","reason":"no"}`)})
			if err != nil {
				o.tb.Fatal(err)
			}
			return o.alice
		}},
		{"shared channel", "another workspace", func(o *office, _ string) string {
			user := o.AddForeignUser("eve", "T0OTHER")
			o.SetApp(o.endURL+"/channels/slack/interactivity", "")
			o.Join(o.ops, user)
			o.links["T0OTHER/"+user], o.links[o.Team()+"/"+user] = "ann", "ann"
			return user
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := openOffice(t, nil)
			id := o.refund()
			user := c.prepare(o, id)
			before := o.request(id).Decision
			o.click(user, "approve")
			wantContains(t, o.told(user), c.want)
			if after := o.request(id).Decision; (before == nil) != (after == nil) {
				t.Errorf("decision %+v", after)
			}
			if c.name != "too late" { // a modal is not opened either
				o.click(user, "reject")
				if _, open := o.OpenView(user); open {
					t.Error("a modal was opened")
				}
				o.wantDecision(id, "", "")
			}
		})
	}
}

func TestClick_OnAnOutdatedCopyIsRejected(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	c := o.card(id)
	c.Digest = strings.Repeat("0", len(c.Digest))
	o.send(t, channel.Message{Delivery: "d2", Attempt: 1, To: o.ops, Card: c})
	o.click(o.alice, "approve")
	wantContains(t, o.told(o.alice), "has changed since")
	o.wantDecision(id, "", "")
}

func TestClick_WeakAuthenticationGetsALink(t *testing.T) {
	o := openOffice(t, nil)
	id := o.ask(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"transfer","args":{"amount":1}}`)})
	if got := strings.Join(labels(t, o.only(t, o.ops).Blocks), ","); strings.Contains(got, "Approve") || !strings.Contains(got, "Sign in to approve") {
		t.Errorf("buttons %s", got)
	}
	c := o.card(id)
	c.MinAuth = "" // a copy from before the policy changed
	o.send(t, channel.Message{Delivery: "d2", Attempt: 1, To: o.ops, Card: c})
	o.click(o.alice, "approve")
	wantContains(t, o.told(o.alice), "Your sign-in is not strong enough for this: sign in with at least sso_mfa.", "https://fermata.example/requests/")
	o.wantDecision(id, "", "")
}

func TestDeny_NeedsAReason(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	o.click(o.alice, "reject")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "  "}); err != nil || errs["f0"] == "" {
		t.Fatalf("blank reason: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "too much"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "reject", "ann")
	wantContains(t, string(o.request(id).Decision.Answer), "too much")
	if seen := o.request(id).Activity.Renderings; len(seen) != 1 || seen[0].Template != "modal@2" {
		t.Errorf("what ann saw: %+v", seen)
	}
}

func TestEdit_ApprovesWithEditedArguments(t *testing.T) {
	o := openOffice(t, nil)
	id := o.ask(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":9007199254740995,"order":"17"},"argsSchema":{"type":"object","properties":{"amount":{"type":"integer"},"order":{"type":"string"}}}}`)})
	o.click(o.alice, "edit")
	if errs, _, err := o.Submit(t.Context(), o.alice, nil); err != nil || !strings.Contains(errs["f0"], "Nothing was changed") {
		t.Fatalf("unchanged: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "much"}); err != nil || errs["f0"] == "" {
		t.Fatalf("invalid: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "9007199254740993"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "approve", "ann")
	wantContains(t, string(o.request(id).Decision.Answer), "9007199254740993")
}

// openCoded opens an office whose rules ask for reason codes and let people edit the amount only.
func openCoded(t *testing.T) *office {
	t.Helper()
	return openOfficeWith(t, nil, func(_ *office, c *executor.DeskConfig) {
		rules, err := policy.Load("policy.yaml", []byte(`
default: allow
rules:
- id: refunds
  when: req.tool == "refund"
  then: ask
  ask: {groups: [{from: ["group:finops"]}], deadline: 1h, editable: ["/amount"], edit_reasons: [typo, scope], reject_reasons: [fraud, duplicate]}
`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = rules
	})
}

func TestDeny_NeedsAReasonCodeOfThePolicy(t *testing.T) {
	o := openCoded(t)
	id := o.refund()
	o.click(o.alice, "reject")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f1": "too much"}); err != nil || errs["f0"] == "" {
		t.Fatalf("without a code: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "1"}); err != nil || errs != nil {
		t.Fatalf("the code is enough: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "reject", "ann")
	wantContains(t, string(o.request(id).Decision.Answer), `"codes":["duplicate"]`)
}

// A value that the rules lock is text in the modal. The edit of another one needs a reason code.
func TestEdit_ShowsLockedValuesAndNeedsACode(t *testing.T) {
	o := openCoded(t)
	id := o.ask(api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":120,"order":"17"},"argsSchema":{"type":"object","properties":{"amount":{"type":"integer"},"order":{"type":"string"}}}}`)})
	o.click(o.alice, "edit")
	v, open := o.OpenView(o.alice)
	if !open {
		t.Fatal("no modal is open")
	}
	var blocks []struct {
		Type  string
		Label struct{ Text string }
	}
	if err := json.Unmarshal(v.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	var inputs []string
	for _, b := range blocks {
		if b.Type == "input" {
			inputs = append(inputs, b.Label.Text)
		}
	}
	if fmt.Sprint(inputs) != "[amount Reason code]" {
		t.Errorf("inputs %q", inputs)
	}
	wantContains(t, string(v.Blocks), `order: \"17\"`)
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "20"}); err != nil || errs["code"] == "" {
		t.Fatalf("without a code: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "20", "code": "typo"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	o.wantDecision(id, "approve", "ann")
	wantContains(t, string(o.request(id).Decision.Answer), `"amount":20`, `"order":"17"`, `"codes":["typo"]`)
}

func TestRespond_AsksForTheFieldsOfTheAnswer(t *testing.T) {
	o := openOffice(t, nil)
	id := o.ask(api.CreateRequest{Kind: "color", Data: json.RawMessage(`{"q":"which?"}`), AnswerSchema: json.RawMessage(`{"type":"object","required":["color","sure"],"properties":{"color":{"enum":["red","blue"]},"sure":{"type":"boolean"},"note":{"type":"string","maxLength":5}}}`)})
	o.click(o.alice, "respond")
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "1", "f1": "0", "f2": "far too long"}); err != nil || errs["f2"] == "" {
		t.Fatalf("long note: %v, %v", errs, err)
	}
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "1", "f1": "0"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	if d := o.request(id).Decision; d == nil || string(d.Answer) != `{"color":"blue","sure":true}` {
		t.Fatalf("decision %+v", d)
	}
}

func TestEdit_LargeFormsGetALink(t *testing.T) {
	o := openOffice(t, nil)
	args := make(map[string]int)
	for i := range 21 {
		args[fmt.Sprint("a", i)] = i
	}
	data, err := json.Marshal(map[string]any{"action": "refund", "args": args, "argsSchema": map[string]any{"type": "object"}})
	if err != nil {
		t.Fatal(err)
	}
	o.ask(api.CreateRequest{Kind: "approval", Data: data})
	o.click(o.alice, "edit")
	if _, open := o.OpenView(o.alice); open {
		t.Fatal("a modal with 21 fields was opened")
	}
	wantContains(t, o.told(o.alice), "too large for Slack", "https://fermata.example/requests/")
}

func TestAskAndEscalate_ReachTheRequest(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	o.click(o.alice, "more/ask "+id)
	if errs, _, err := o.Submit(t.Context(), o.alice, map[string]string{"f0": "Why 120?"}); err != nil || errs != nil {
		t.Fatalf("submit: %v, %v", errs, err)
	}
	o.process()
	if asked := o.request(id).Activity.Clarifications; len(asked) != 1 || asked[0].Text != "Why 120?" || asked[0].By != "ann" {
		t.Fatalf("clarifications %+v", asked)
	}
	o.click(o.alice, "more/escalate "+id)
	history := fmt.Sprint(o.request(id).Activity.History)
	if !strings.Contains(history, "escalated") && o.told(o.alice) == "" {
		t.Fatalf("neither escalated nor answered: %s", history)
	}
}

func TestCommand_ListsMyRequests(t *testing.T) {
	o := openOffice(t, nil)
	o.refund()
	for text, want := range map[string]string{"": "Open requests that wait for you: 1", "help": "/fermata", "nonsense": "You are ann"} {
		if d, err := o.Command(t.Context(), o.alice, o.ops, "/fermata", text); err != nil || d.Status != http.StatusOK {
			t.Fatalf("%+v, %v", d, err)
		}
		o.process()
		wantContains(t, o.told(o.alice), want)
	}
	o.links[o.Team()+"/"+o.alice] = "zoe"
	if _, err := o.Command(t.Context(), o.alice, o.ops, "/fermata", ""); err != nil {
		t.Fatal(err)
	}
	o.process()
	wantContains(t, o.told(o.alice), "No open request")
}

func TestSocketMode_DecidesAndIgnoresRepeatedEnvelopes(t *testing.T) {
	o := openOffice(t, nil)
	o.config.AppToken, o.config.SigningSecret = o.AppToken(), ""
	o.reopen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.channel.Run(ctx, o) }()
	for deadline := time.Now().Add(time.Minute); o.Sockets() < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the sockets are not open")
		}
	}
	id := o.refund()
	d := o.send1(o.alice, "approve")
	if _, err := o.ReplayEnvelope(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := len(o.pending); n != 1 {
		t.Fatalf("%d stored clicks; want one", n)
	}
	o.process()
	o.wantDecision(id, "approve", "ann")
	if response, err := http.Post(o.endURL+"/channels/slack/interactivity", "", nil); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("the endpoint without a secret: %v, %v", response, err)
	} else {
		response.Body.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestReceive_OutageOfTheAPIIsRetried(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	o.send1(o.alice, "approve")
	in := o.pending[0]
	url := o.url
	o.url = "http://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := o.channel.Receive(ctx, o, in); err == nil {
		t.Fatal("a click was lost during an outage")
	}
	o.url = url
	for range 2 { // processing twice is harmless
		if err := o.channel.Receive(t.Context(), o, in); err != nil {
			t.Fatal(err)
		}
	}
	o.wantDecision(id, "approve", "ann")
	if told := o.told(o.alice); told != "" {
		t.Errorf("told %s", told)
	}
}

// A payload for another workspace in which the app is installed has a valid signature. It is not
// counted, although an account with this id is linked.
func TestClick_OfAnotherWorkspaceIsNotCounted(t *testing.T) {
	o := openOffice(t, nil)
	id := o.refund()
	o.links["T0OTHER/"+o.alice] = "ann"
	payload, err := o.ClickPayload(o.alice, o.ops, o.only(t, o.ops).TS, "approve")
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(url.Values{"payload": {strings.ReplaceAll(string(payload), o.Team(), "T0OTHER")}}.Encode())
	if d, err := o.Post(t.Context(), o.endURL+"/channels/slack/interactivity", o.Sign(body, time.Now(), o.SigningSecret()), body); err != nil || d.Status != http.StatusOK {
		t.Fatalf("%+v, %v", d, err)
	}
	o.process()
	o.wantDecision(id, "", "")
	wantContains(t, o.told(o.alice), "another workspace")
}
