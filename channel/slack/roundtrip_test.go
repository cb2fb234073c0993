package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	"github.com/fermata-go/fermata/internal/timespan"
)

// current is the channel of an office, also after it was opened again.
type current struct{ *office }

func (c current) Kind() string { return slack.Kind }
func (c current) Send(ctx context.Context, m channel.Message) (string, error) {
	return c.channel.Send(ctx, m)
}
func (c current) Find(ctx context.Context, m channel.Message) (string, bool, error) {
	return c.channel.Find(ctx, m)
}

// pager records pages.
type pager struct {
	mu   sync.Mutex
	sent []channel.Message
}

func (p *pager) Kind() string { return "pager" }
func (p *pager) Send(_ context.Context, m channel.Message) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	return "page", nil
}

func (p *pager) pages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

// of returns the pages of a request.
func (p *pager) of(request string) (all []channel.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
		if m.Card.Request == request && m.Kind == desk.NoticePage {
			all = append(all, m)
		}
	}
	return all
}

// openRoute opens an office whose executor delivers requests to the Slack channel, and pages after
// a while.
func openRoute(t *testing.T, pageAfter time.Duration) (*office, *pager) {
	t.Helper()
	p := new(pager)
	o := openOfficeWith(t, nil, func(o *office, c *executor.DeskConfig) {
		c.Channels = []channel.Channel{current{o}, p}
		c.Routes = map[string]desk.Route{"default": {Name: "default", DeadlineFrom: desk.DeadlineFromCreated, Steps: []desk.Step{
			{Notify: []string{"slack:" + o.ops}}, {At: timespan.Duration(pageAfter), Page: []string{"pager:oncall"}}, {At: timespan.Duration(time.Hour), Expire: "stale"},
		}}}
		c.BaseURL = "https://fermata.example"
	})
	return o, p
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

var refundAsk = api.CreateRequest{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"amount":120,"order":"17"},"summary":"The parcel was damaged."}`)}

func TestRoundTrip_PostedClickedDecidedAndWithoutButtons(t *testing.T) {
	o, p := openRoute(t, time.Hour)
	id := o.create(refundAsk)
	until(t, "the request is posted", func() bool { return len(o.Messages(o.ops)) == 1 })
	m := o.only(t, o.ops)
	wantContains(t, string(m.Blocks), "120", "The parcel was damaged.", "not verified", "Rule: refunds", "finops")
	if got := labels(t, m.Blocks); !slices.Contains(got, "Approve") {
		t.Fatalf("buttons %q", got)
	}
	o.click(o.alice, "approve")
	o.wantDecision(id, "approve", "ann")
	until(t, "the message has no buttons", func() bool { return !slices.Contains(labels(t, o.only(t, o.ops).Blocks), "Approve") })
	wantContains(t, string(o.only(t, o.ops).Blocks), "approved by ann")
	if p.pages() != 0 {
		t.Error("a decided request paged")
	}
}

func TestRoundTrip_DecidedElsewhereHasNoButtons(t *testing.T) {
	o, _ := openRoute(t, time.Hour)
	id := o.create(refundAsk)
	until(t, "the request is posted", func() bool { return len(o.Messages(o.ops)) == 1 })
	if _, err := o.as("bob", authn.RoleApprover).Decide(t.Context(), id, api.Decide{Answer: json.RawMessage(`{"verb":"reject","reason":"no"}`)}); err != nil {
		t.Fatal(err)
	}
	until(t, "the message has no buttons", func() bool { return !slices.Contains(labels(t, o.only(t, o.ops).Blocks), "Approve") })
	wantContains(t, string(o.only(t, o.ops).Blocks), "rejected by bob")
}

func TestRoundTrip_LostResponseLeavesOneMessage(t *testing.T) {
	o, _ := openRoute(t, time.Hour)
	o.FailNext("chat.postMessage", slackfake.Failure{LoseResponse: true})
	id := o.create(refundAsk)
	until(t, "the copy is found and replaced", func() bool { return len(o.Calls("chat.update")) > 0 })
	o.click(o.alice, "approve")
	o.wantDecision(id, "approve", "ann")
	until(t, "the message has no buttons", func() bool { return !slices.Contains(labels(t, o.only(t, o.ops).Blocks), "Approve") })
}

func TestRoundTrip_RateLimitDelaysThePost(t *testing.T) {
	o, _ := openRoute(t, time.Hour)
	o.FailNext("chat.postMessage", slackfake.Failure{RetryAfter: time.Second})
	o.create(refundAsk)
	until(t, "the request is posted", func() bool { return len(o.Messages(o.ops)) == 1 })
	calls := o.Calls("chat.postMessage")
	if len(calls) != 2 || calls[1].At.Sub(calls[0].At) < time.Second {
		t.Errorf("%d calls; want a second one after the pause", len(calls))
	}
}

func TestRoundTrip_OutageOfSlackPagesAndIsShownAtTheRequest(t *testing.T) {
	o, p := openRoute(t, 50*time.Millisecond)
	o.SetDown(true)
	id := o.create(refundAsk)
	until(t, "the pager is called", func() bool { return p.pages() > 0 })
	until(t, "the request says who was not reached", func() bool {
		return strings.Contains(fmt.Sprint(o.request(id).Activity.History), "could not reach slack:")
	})
	o.SetDown(false)
	until(t, "the request is posted after the outage", func() bool { return len(o.Messages(o.ops)) == 1 })
	o.click(o.alice, "approve")
	o.wantDecision(id, "approve", "ann")
}
