package channeltest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// The texts of the requests of the suite.
const (
	action  = "refund"
	amount  = "120.25"
	secret  = "DE02120300000000202051"
	baseURL = "https://fermata.example"
)

// ask is a request and what it shows.
type ask struct {
	request desk.Request
	data    json.RawMessage
	now     time.Time
}

// newAsk returns an open request for two approvals. The value of the argument note is any JSON
// value, said is the text of the agent.
func newAsk(t testing.TB, id string, note json.RawMessage, said string) ask {
	t.Helper()
	args := json.RawMessage(`{"amount":` + amount + `,"iban":"` + secret + `","note":` + string(note) + `}`)
	data, err := json.Marshal(fermata.ApprovalRequest{Action: action, Args: args, Digest: "d", Summary: said})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	need := requirement.OnePerson()
	need.Groups = []requirement.Group{{From: []string{"group:finops"}, Count: 2}}
	need.Sensitive = []string{"/iban"}
	change, err := desk.New(desk.RequestSpec{
		ID: id, Requirement: need, Args: args,
		Subject: desk.Subject{Kind: fermata.Approval.Name(), ShownDigest: "shown-" + id, Action: action, ActionDigest: "d", Requester: "support-bot", Rules: []string{"refunds"}},
	}, env(now))
	if err != nil {
		t.Fatal(err)
	}
	return ask{request: change.Request, data: data, now: now}
}

func env(now time.Time) desk.Env {
	return desk.Env{Now: now, Directory: desk.StaticDirectory{"group:finops": {"ann", "bob", "carl"}}}
}

// plainAsk is newAsk with harmless texts.
func plainAsk(t testing.TB, id string) ask {
	t.Helper()
	return newAsk(t, id, json.RawMessage(`"broken parcel"`), "The parcel with "+secret+" was damaged.")
}

// after returns the request after a command.
func (a ask) after(t testing.TB, command desk.Command) ask {
	t.Helper()
	change, err := desk.Apply(a.request, command, env(a.now))
	if err != nil {
		t.Fatal(err)
	}
	a.request = change.Request
	return a
}

// from returns the sender of a command by a person who saw the request.
func (a ask) from(person string) desk.From {
	return desk.From{Actor: desk.Actor{ID: person, Kind: desk.ActorHuman}, Seen: desk.Seen{Digest: a.request.Digest()}}
}

func (a ask) rejected(t testing.TB) ask {
	t.Helper()
	return a.after(t, desk.Reject{From: a.from("ann"), Reason: "too much"})
}

func (a ask) card() channel.Card {
	return channel.NewCard(channel.Source{Request: a.request, Data: a.data, Agent: "shop", Environment: "prod", BaseURL: baseURL, Now: a.now})
}

// message returns a message for a new copy.
func (a ask) message(to string) channel.Message {
	return channel.Message{
		Account: "acme", Delivery: a.request.ID + "/e1/s1#d", Attempt: 1, Kind: desk.NoticeNotify, To: to,
		Notice: desk.Notice{Key: a.request.ID + "/e1/s1", Request: a.request.ID, Rev: a.request.Rev, Kind: desk.NoticeNotify}, Card: a.card(),
	}
}

// update returns the message that replaces a copy.
func (a ask) update(m channel.Message, ref string) channel.Message {
	m.Kind, m.Ref, m.Card = desk.NoticeRerender, ref, a.card()
	return m
}
