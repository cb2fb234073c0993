package pager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/post"
	"github.com/fermata-go/fermata/internal/timespan"
)

// PagerDutyURL is the Events API v2 of PagerDuty.
const PagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// maxSummary is the limit of the API, in characters.
const maxSummary = 1024

// PagerDutyConfig configures a [PagerDuty] channel.
type PagerDutyConfig struct {
	// RoutingKeys are the integration keys by the name in a target: db for pagerduty:db.
	RoutingKeys map[string]string
	// URL is the address of the Events API. Defaults to [PagerDutyURL].
	URL string
	// Allow are hosts that may be called although they are not public; see
	// [outbound.Config].
	Allow []string
}

// PagerDuty pages through the Events API v2 of PagerDuty. Its targets are pagerduty:NAME.
type PagerDuty struct {
	config PagerDutyConfig
	client *outbound.Client
}

// NewPagerDuty returns a channel.
func NewPagerDuty(config PagerDutyConfig) (*PagerDuty, error) {
	if len(config.RoutingKeys) == 0 {
		return nil, errors.New("pager: no routing keys for PagerDuty")
	}
	for name, key := range config.RoutingKeys {
		if key == "" {
			return nil, fmt.Errorf("pager: the routing key of pagerduty:%s is empty", name)
		}
	}
	config.URL = cmp.Or(config.URL, PagerDutyURL)
	client, err := newClient(config.URL, config.Allow)
	if err != nil {
		return nil, err
	}
	return &PagerDuty{config: config, client: client}, nil
}

// newClient returns a client that may call a URL of the configuration.
func newClient(to string, allow []string) (*outbound.Client, error) {
	client, err := outbound.NewClient(outbound.Config{Allow: allow})
	if err != nil {
		return nil, fmt.Errorf("pager: %w", err)
	}
	if _, err := client.ParseURL(to); err != nil {
		return nil, fmt.Errorf("pager: the URL is not allowed: %w", err)
	}
	return client, nil
}

// Kind returns "pagerduty".
func (p *PagerDuty) Kind() string { return "pagerduty" }

// CheckAddress reports whether a name has a routing key.
func (p *PagerDuty) CheckAddress(to string) error {
	if p.config.RoutingKeys[to] == "" {
		return fmt.Errorf("pagerduty:%s has no routing key", to)
	}
	return nil
}

// event is an event of the Events API v2.
type event struct {
	RoutingKey string        `json:"routing_key"`
	Action     string        `json:"event_action"`
	DedupKey   string        `json:"dedup_key"`
	Client     string        `json:"client,omitempty"`
	ClientURL  string        `json:"client_url,omitempty"`
	Payload    *eventPayload `json:"payload,omitempty"`
	Links      []eventLink   `json:"links,omitempty"`
}

type eventPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp time.Time      `json:"timestamp"`
	Class     string         `json:"class"`
	Component string         `json:"component,omitempty"`
	Group     string         `json:"group,omitempty"`
	Details   map[string]any `json:"custom_details"`
}

type eventLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// Send triggers or resolves an incident.
func (p *PagerDuty) Send(ctx context.Context, m channel.Message) (string, error) {
	key, ok := p.config.RoutingKeys[m.To]
	if !ok {
		return "", &channel.Error{Code: "unknown_target", Permanent: true, Err: fmt.Errorf("pagerduty:%s has no routing key", m.To)}
	}
	e := event{RoutingKey: key, Action: "trigger", DedupKey: incidentKey(m)}
	if isOver(m) {
		e.Action = "resolve"
	} else {
		e.Client, e.ClientURL = "Fermata", m.Card.Link
		e.Payload = &eventPayload{
			Summary: summary(m), Source: "fermata/" + m.Account, Severity: severity(m.Severity), Timestamp: m.Card.At.UTC(), Class: "request.waiting",
			Component: cmp.Or(m.Card.Action, m.Card.Kind), Group: m.Card.Environment, Details: details(m),
		}
		if m.Card.Link != "" {
			e.Links = []eventLink{{Href: m.Card.Link, Text: "Open the request"}}
		}
	}
	return e.DedupKey, post.JSON(ctx, p.client, p.config.URL, nil, e)
}

// Test triggers an incident of severity info and resolves it at once.
func (p *PagerDuty) Test(ctx context.Context, to string) (channel.TestResult, error) {
	return test(ctx, p, to)
}

// test sends a page and its end.
func test(ctx context.Context, to channel.Channel, address string) (channel.TestResult, error) {
	m := channel.TestMessage(address, time.Now())
	m.Incident = m.Delivery
	var err error
	if m.Ref, err = to.Send(ctx, m); err == nil {
		m.Kind = desk.NoticeResolve
		_, err = to.Send(ctx, m)
	}
	return channel.TestResult{Sent: to.Kind() + " accepted a page of severity info, and its end"}, post.Explain(err)
}

var (
	_ channel.Tester = (*PagerDuty)(nil)
	_ channel.Tester = (*Alertmanager)(nil)
)

// isOver reports whether the incident has ended.
func isOver(m channel.Message) bool { return m.Kind == desk.NoticeResolve || !m.Card.Open() }

// incidentKey returns the key that all pages of a request share. A notice that is not a page has no
// incident; the reference of its copy is the key that it was sent with.
func incidentKey(m channel.Message) string {
	if m.Incident == "" && m.Ref != "" {
		return m.Ref
	}
	return "fermata:" + m.Account + ":" + cmp.Or(m.Incident, m.Card.Request)
}

// summary says what waits, without arguments.
func summary(m channel.Message) string {
	c := m.Card
	if m.Kind == channel.NoticeTest {
		return c.Title + ": nothing waits for a decision"
	}
	text := []rune("A decision is needed: " + cmp.Or(c.Action, c.Kind))
	if c.Environment != "" {
		text = append(text, []rune(" in "+c.Environment)...)
	}
	if waited := c.Waiting(); waited >= time.Minute {
		text = append(text, []rune(", waiting for "+timespan.Duration(waited.Truncate(time.Minute)).String())...)
	}
	if len(text) > maxSummary {
		text = append(text[:maxSummary-1], '…')
	}
	return string(text)
}

// details are shown below the summary.
func details(m channel.Message) map[string]any {
	all := map[string]any{"request": m.Card.Request, "kind": m.Card.Kind}
	if len(m.Card.Rules) > 0 {
		all["rules"] = m.Card.Rules
	}
	if len(m.Card.Deciders) > 0 {
		all["deciders"] = m.Card.Deciders
	}
	if !m.Card.Deadline.IsZero() {
		all["deadline"] = m.Card.Deadline.UTC().Format(time.RFC3339)
	}
	return all
}

// severity returns one of the severities of PagerDuty.
func severity(name string) string {
	if slices.Contains([]string{"critical", "error", "warning", "info"}, name) {
		return name
	}
	return "error"
}
