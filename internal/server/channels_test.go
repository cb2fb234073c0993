package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// chatChannel is a channel whose messages name a decision and the account that sent it.
type chatChannel struct {
	down  func() error
	cards chan channel.Message
}

func (c *chatChannel) Kind() string { return "chat" }

func (c *chatChannel) Send(_ context.Context, m channel.Message) (string, error) {
	if c.down != nil {
		return "", c.down()
	}
	c.cards <- m
	return "copy-1", nil
}

func (c *chatChannel) Receive(ctx context.Context, desk channel.Desk, in channel.Inbound) error {
	var click struct{ User, Request, Digest string }
	if err := json.Unmarshal(in.Body, &click); err != nil {
		return err
	}
	person, _, err := desk.Client(ctx, channel.Sender{Account: in.Account, Channel: "chat", ID: click.User})
	if errors.Is(err, channel.ErrNotLinked) {
		return &channel.Error{Code: "not_linked", Permanent: true}
	}
	if err != nil {
		return err
	}
	_, err = person.Decide(ctx, click.Request, api.Decide{ResumeID: in.ID, Answer: json.RawMessage(`{"verb":"approve"}`), Shown: click.Digest})
	return err
}

func openChat(t *testing.T, c *chatChannel) *site {
	t.Helper()
	s := openWith(t, nil, func(config *executor.Config) {
		config.Poll = 20 * time.Millisecond
		config.Desk.Channels = []channel.Channel{c}
		config.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"chat:room"}}, {At: timespan.Duration(time.Hour), Expire: "stale"}}}}
	})
	s.e.StartWorkers()
	return s
}

const dropRequest = `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{"table":"users"}}}`

// A click counts as the decision of the person who has linked the account, and every copy is
// replaced by one without actions.
func TestChannels_ClickOfLinkedAccountDecides(t *testing.T) {
	c := &chatChannel{cards: make(chan channel.Message, 10)}
	s := openChat(t, c)
	d := s.server.Desk("https://fermata.example")
	go s.server.RunChannels(t.Context(), []channel.Channel{c}, d)
	s.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	posted := <-c.cards
	if posted.Ref != "" || posted.To != "room" || posted.Card.Title != "Drop table users" || !posted.Card.Allows("approve") {
		t.Fatalf("posted %+v", posted)
	}
	sender := channel.Sender{Account: "acme", Channel: "chat", ID: "T1/U1", Name: "Ann"}
	click := func(id string) {
		body, err := json.Marshal(map[string]string{"user": sender.ID, "request": posted.Card.Request, "digest": posted.Card.Digest})
		if err == nil {
			err = d.Accept(t.Context(), "chat", channel.Inbound{Account: "acme", ID: id, Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	click("1") // not linked: nothing happens
	if _, _, err := d.Client(t.Context(), sender); !errors.Is(err, channel.ErrNotLinked) {
		t.Fatalf("before the link: %v", err)
	}
	link, err := d.LinkURL(t.Context(), sender)
	token, found := strings.CutPrefix(link, "https://fermata.example/link/")
	if err != nil || !found {
		t.Fatalf("link %q, %v", link, err)
	}
	if _, err := s.e.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("approver", requirement.AuthSSO)}, []string{"approver"}); err != nil {
		t.Fatal(err)
	}
	click("2")
	final := <-c.cards
	if final.Ref != "copy-1" || final.Card.Open() || len(final.Card.Actions) > 0 || !strings.HasPrefix(final.Card.Outcome, "approved by approver") {
		t.Errorf("replaced by %+v", final)
	}
	got := decode[api.Request](t, s.call("approver@acme", "GET", "/api/v1/requests/"+posted.Card.Request, ""))
	if got.Decision == nil || got.Decision.By != "approver" || got.Decision.Verdict != string(fermata.VerbApprove) || !strings.Contains(got.Decision.Via, "linked") {
		t.Errorf("decision %+v", got.Decision)
	}
}

// An API key cannot link an account: it is not a person.
func TestChannels_KeyCannotLinkAnAccount(t *testing.T) {
	s := openChat(t, &chatChannel{cards: make(chan channel.Message, 10)})
	token, err := s.e.NewLinkToken(t.Context(), channel.Sender{Account: "acme", Channel: "chat", ID: "U1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.call("approver@acme", "POST", "/api/v1/me/channel-links", `{"token":"`+token+`"}`); got.status != 400 || !strings.Contains(got.body, "browser") {
		t.Errorf("%+v", got)
	}
}

func TestDeliveries_FailedOneIsListedAndSentAgain(t *testing.T) {
	c := &chatChannel{cards: make(chan channel.Message, 10)}
	c.down = func() error {
		return &channel.Error{Code: "channel_not_found", Permanent: true, Err: errors.New("secret")}
	}
	s := openChat(t, c)
	s.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	var list api.Page[api.Delivery]
	for len(list.Items) == 0 {
		list = decode[api.Page[api.Delivery]](t, s.call("auditor@acme", "GET", "/api/v1/deliveries?state=dead", ""))
	}
	dead := list.Items[0]
	if dead.Channel != "chat" || dead.Code != "channel_not_found" || dead.Target != "chat:r•••m" || dead.Address != "r•••m" || dead.NextAt != nil {
		t.Errorf("%+v", dead)
	}
	if other := decode[api.Page[api.Delivery]](t, s.call("auditor@other", "GET", "/api/v1/deliveries", "")); len(other.Items) > 0 {
		t.Errorf("I8: another account sees %+v", other.Items)
	}
	path := "/api/v1/deliveries/" + strings.NewReplacer("/", "%2F", "#", "%23").Replace(dead.ID) + "/send"
	if got := s.call("approver@acme", "POST", path, ""); got.status != 403 {
		t.Errorf("an approver sends it again: %+v", got)
	}
	if got := s.call("admin@acme", "POST", path, ""); got.status != 200 || got.field("state") != "queued" {
		t.Errorf("%+v", got)
	}
}

// The newest failure of a channel is in its health.
func TestDeliveryHealth_CountsByChannel(t *testing.T) {
	c := &chatChannel{cards: make(chan channel.Message, 10)}
	c.down = func() error {
		return &channel.Error{Code: "channel_not_found", Permanent: true, Err: errors.New("secret")}
	}
	s := openChat(t, c)
	s.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		health := decode[api.Page[api.ChannelHealth]](t, s.call("auditor@acme", "GET", "/api/v1/deliveries/health", "")).Items
		if len(health) == 1 && health[0].Dead == 1 {
			if h := health[0]; h.Channel != "chat" || !h.Configured || h.Code != "channel_not_found" || h.LastFailedAt == nil || h.Sent+h.Failed+h.Queued != 0 {
				t.Errorf("%+v", h)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", health)
		}
	}
	if other := decode[api.Page[api.ChannelHealth]](t, s.call("auditor@other", "GET", "/api/v1/deliveries/health", "")); len(other.Items) != 1 || other.Items[0] != (api.ChannelHealth{Channel: "chat", Configured: true}) {
		t.Errorf("I8: another account sees %+v", other.Items)
	}
}

// A link is valid for 15 minutes, and a linked account for a week.
func TestLinkToken_Expires(t *testing.T) {
	clock := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	s := openWith(t, nil, func(config *executor.Config) { config.Store = memory.NewStore(func() time.Time { return clock }) })
	sender := channel.Sender{Account: "acme", Channel: "chat", ID: "U1"}
	token, err := s.e.NewLinkToken(t.Context(), sender)
	if err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(15 * time.Minute)
	if _, err := s.e.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, nil); !errors.Is(err, executor.ErrLinkInvalid) {
		t.Errorf("after 15 minutes: %v", err)
	}
	if token, err = s.e.NewLinkToken(t.Context(), sender); err != nil {
		t.Fatal(err)
	}
	if _, err := s.e.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.e.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, nil); !errors.Is(err, executor.ErrLinkInvalid) {
		t.Errorf("a used link: %v", err)
	}
	clock = clock.Add(7 * 24 * time.Hour)
	if _, err := s.e.ChannelLink(t.Context(), sender); !errors.Is(err, channel.ErrNotLinked) {
		t.Errorf("after a week: %v", err)
	}
	if links, err := s.e.ChannelLinks(t.Context(), "acme", "ann"); err != nil || len(links) > 0 {
		t.Errorf("after a week: %v, %v", links, err)
	}
}

// A click that was acknowledged decides although the server stops before it is processed. Another
// server continues.
func TestChannels_ClickSurvivesARestart(t *testing.T) {
	c := &chatChannel{cards: make(chan channel.Message, 10)}
	st := memory.NewStore(nil)
	open := func() *site {
		s := openWith(t, nil, func(config *executor.Config) {
			config.Store, config.Poll = st, 20*time.Millisecond
			config.Desk.Channels = []channel.Channel{c}
			config.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"chat:room"}}, {At: timespan.Duration(time.Hour), Expire: "stale"}}}}
		})
		s.e.StartWorkers()
		return s
	}
	first := open()
	first.call("agent@acme", "POST", "/api/v1/requests", dropRequest)
	posted := <-c.cards
	sender := channel.Sender{Account: "acme", Channel: "chat", ID: "T1/U1", Name: "Ann"}
	token, err := first.e.NewLinkToken(t.Context(), sender)
	if err == nil {
		_, err = first.e.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("approver", requirement.AuthSSO)}, []string{"approver"})
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"user": sender.ID, "request": posted.Card.Request, "digest": posted.Card.Digest})
	if err == nil { // nothing processes clicks in this server
		err = first.server.Desk("https://fermata.example").Accept(t.Context(), "chat", channel.Inbound{Account: "acme", ID: "1", Body: body})
	}
	if err == nil {
		err = first.e.Stop(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	second := open()
	go second.server.RunChannels(t.Context(), []channel.Channel{c}, second.server.Desk("https://fermata.example"))
	if final := <-c.cards; final.Card.Open() || len(final.Card.Actions) > 0 || !strings.HasPrefix(final.Card.Outcome, "approved by approver") {
		t.Errorf("replaced by %+v", final)
	}
}
