package channel_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// refund returns a request to approve a refund, and what it shows.
func refund(t *testing.T, args string, need requirement.Requirement) (desk.Request, json.RawMessage) {
	t.Helper()
	data, err := json.Marshal(fermata.ApprovalRequest{Action: "refund", Summary: "Customer is angry,\nplease \u202ehurry", Args: json.RawMessage(args), Digest: "d"})
	if err != nil {
		t.Fatal(err)
	}
	change, err := desk.New(desk.RequestSpec{
		ID: "int_1", Requirement: need, Args: json.RawMessage(args),
		Subject: desk.Subject{Kind: fermata.Approval.Name(), ShownDigest: "shown", Action: "refund", ActionDigest: "d", Requester: "support-bot", Rules: []string{"large"}, Reason: "above 100"},
	}, desk.Env{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return change.Request, data
}

func TestNewCard_OpenApproval(t *testing.T) {
	need := requirement.OnePerson()
	need.Groups = []requirement.Group{{From: []string{"group:finops"}, Count: 2}}
	need.Sensitive = []string{"/iban"}
	r, data := refund(t, `{"amount":120.00,"order":"17","iban":"DE02120300000000202051","note":"p\u0430y"}`, need)
	c := channel.NewCard(channel.Source{Request: r, Data: data, Agent: "shop", Environment: "prod", BaseURL: "https://f.example/", Now: noon})
	if c.Title != "Refund on order 17, amount 120.00" {
		t.Errorf("title %q", c.Title)
	}
	if !strings.HasPrefix(c.Sentence, "support-bot wants to refund on order 17") {
		t.Errorf("sentence %q", c.Sentence)
	}
	facts := make(map[string]api.Fact)
	for _, f := range c.Facts {
		facts[f.Label] = f
	}
	if len(facts) != 4 || !facts["iban"].Masked || facts["iban"].Value != desk.Masked || !facts["note"].Flagged || facts["order"].Flagged {
		t.Errorf("facts %+v", c.Facts)
	}
	if len(c.Said) != 1 || c.Said[0].By != "shop" || c.Said[0].Text != "Customer is angry,\nplease U+202Ehurry" {
		t.Errorf("said %q", c.Said)
	}
	if !slices.Equal(c.Deciders, []string{"2 × finops"}) || !strings.HasPrefix(c.Progress, "0 of 2") {
		t.Errorf("deciders %q, progress %q", c.Deciders, c.Progress)
	}
	if !c.Open() || !c.Allows("approve") || !c.Allows("reject") || c.Allows("respond") {
		t.Errorf("state %s, actions %+v", c.State, c.Actions)
	}
	if c.Link != "https://f.example/requests/int_1" || c.Digest != "shown" || c.Environment != "prod" || c.Outcome != "" {
		t.Errorf("link %q, digest %q, environment %q, outcome %q", c.Link, c.Digest, c.Environment, c.Outcome)
	}
}

func TestNewCard_DecidedHasNoActions(t *testing.T) {
	r, data := refund(t, `{"amount":1}`, requirement.OnePerson())
	change, err := desk.Apply(r, desk.Reject{From: desk.From{Actor: desk.Actor{ID: "ann", Kind: desk.ActorHuman}, Seen: desk.Seen{Digest: r.Digest()}}, Reason: "too much"}, desk.Env{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	c := channel.NewCard(channel.Source{Request: change.Request, Data: data, Now: noon})
	if c.Open() || len(c.Actions) > 0 || c.Outcome != "rejected by ann: too much" || !c.DecidedAt.Equal(noon) || c.Link != "" {
		t.Errorf("got %+v", c)
	}
}

func TestNewCard_EditedArgumentsReplaceTheSummary(t *testing.T) {
	r, data := refund(t, `{"amount":120,"order":"17"}`, requirement.OnePerson())
	r.Edit = &desk.Edit{By: "ann", Args: json.RawMessage(`{"amount":90,"order":"17"}`), Digest: "e"}
	c := channel.NewCard(channel.Source{Request: r, Data: data, Now: noon})
	if c.Title != "Refund on order 17, amount 90" || c.Facts[0].Was != "120" || c.Facts[1].Was != "" || len(c.Said) > 0 {
		t.Errorf("got %+v", c)
	}
}

func TestError_CodeIsShown(t *testing.T) {
	cause := errors.New("secret")
	err := error(&channel.Error{Code: "channel_not_found", Permanent: true, RetryAfter: time.Minute, Err: cause})
	if code := desk.NoticeFailureCode(err); code != "channel_not_found" {
		t.Errorf("code %q", code)
	}
	if !channelerror.IsPermanent(err) || channelerror.RetryAfter(err) != time.Minute || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if channelerror.IsPermanent(cause) || channelerror.RetryAfter(cause) != 0 {
		t.Error("another error is permanent")
	}
}

// The title of a hold and of an action are words, and an argument that could deceive is not in
// the title.
func TestNewCard_TitleIsASentence(t *testing.T) {
	r, data := refund(t, `{"amount":49.5,"currency":"EUR","order":"17","customer":"p\u0430ul"}`, requirement.OnePerson())
	c := channel.NewCard(channel.Source{Request: r, Data: data, Now: noon})
	if c.Title != "Refund 49.50 EUR on order 17" || !strings.HasSuffix(c.Sentence, " wants to refund 49.50 EUR on order 17") {
		t.Errorf("title %q, sentence %q", c.Title, c.Sentence)
	}
	r.Subject.Kind = "hold"
	c = channel.NewCard(channel.Source{Request: r, Data: json.RawMessage(`{"version":"v2"}`), Now: noon})
	if !strings.HasSuffix(c.Title, " is held") {
		t.Errorf("title of a hold: %q", c.Title)
	}
}
