package pager_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/pager"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// page is a page for a request that has waited for two hours.
func page() channel.Message {
	return channel.Message{
		Account: "acme", Delivery: "d1", Attempt: 1, Kind: desk.NoticePage, To: "db", Incident: "int_1/7", Severity: "critical",
		Card: channel.Card{
			Request: "int_1", Kind: "approval", Action: "drop_table", Presentation: api.Presentation{Title: "drop_table: table users", Facts: []api.Fact{{Label: "table", Value: "users"}}},
			Environment: "prod", Rules: []string{"destructive"}, Created: noon.Add(-2 * time.Hour), At: noon, State: desk.StateOpen, Link: "https://fermata.example/requests/int_1",
		},
	}
}

// receiver is a strict peer: it records the bodies, and fails the test for unknown requests.
type receiver struct {
	*httptest.Server
	bodies []string
	status int
	header http.Header
	path   string
	token  string
}

func newReceiver(t *testing.T, path string) *receiver {
	r := &receiver{status: http.StatusAccepted, path: path}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Method != http.MethodPost || q.URL.Path != r.path || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %s: %v", q.Method, q.URL, q.Header.Get("Content-Type"), err)
		}
		r.bodies, r.token = append(r.bodies, string(body)), q.Header.Get("Authorization")
		for name, values := range r.header {
			w.Header()[name] = values
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// pagerDutyEvent decodes an event as strictly as the API documents it.
func pagerDutyEvent(t *testing.T, body string) map[string]any {
	t.Helper()
	var event struct {
		RoutingKey string         `json:"routing_key"`
		Action     string         `json:"event_action"`
		DedupKey   string         `json:"dedup_key"`
		Client     string         `json:"client"`
		ClientURL  string         `json:"client_url"`
		Payload    map[string]any `json:"payload"`
		Links      []struct{ Href, Text string }
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if event.RoutingKey != "R0" || len(event.DedupKey) > 255 || event.DedupKey == "" {
		t.Errorf("event %+v", event)
	}
	if event.Action == "trigger" {
		for _, name := range []string{"summary", "source", "severity", "timestamp"} {
			if event.Payload[name] == "" || event.Payload[name] == nil {
				t.Errorf("no %s in %s", name, body)
			}
		}
	}
	return map[string]any{"action": event.Action, "key": event.DedupKey, "summary": event.Payload["summary"], "severity": event.Payload["severity"]}
}

func newPagerDuty(t *testing.T, r *receiver) *pager.PagerDuty {
	t.Helper()
	p, err := pager.NewPagerDuty(pager.PagerDutyConfig{RoutingKeys: map[string]string{"db": "R0"}, URL: r.URL + "/v2/enqueue", Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPagerDuty_TriggersAndResolvesOneIncident(t *testing.T) {
	r := newReceiver(t, "/v2/enqueue")
	p := newPagerDuty(t, r)
	first := page()
	again, end := first, first
	again.Delivery, again.Severity = "d2", "unknown"
	end.Kind, end.Delivery = desk.NoticeResolve, "d3"
	for _, m := range []channel.Message{first, again, end} {
		if _, err := p.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	one, two, three := pagerDutyEvent(t, r.bodies[0]), pagerDutyEvent(t, r.bodies[1]), pagerDutyEvent(t, r.bodies[2])
	if one["action"] != "trigger" || one["severity"] != "critical" || one["summary"] != "A decision is needed: drop_table in prod, waiting for 2h" {
		t.Errorf("the first event is %v", one)
	}
	if two["severity"] != "error" || three["action"] != "resolve" || one["key"] != two["key"] || two["key"] != three["key"] {
		t.Errorf("the events are %v, %v, %v", one, two, three)
	}
}

// Pages leave the systems of the organisation.
func TestPages_ContainNoArguments(t *testing.T) {
	r := newReceiver(t, "/v2/enqueue")
	if _, err := newPagerDuty(t, r).Send(t.Context(), page()); err != nil {
		t.Fatal(err)
	}
	a := newReceiver(t, "/api/v2/alerts")
	m, err := pager.NewAlertmanager(pager.AlertmanagerConfig{URL: a.URL, Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Send(t.Context(), page()); err != nil {
		t.Fatal(err)
	}
	for _, body := range append(r.bodies, a.bodies...) {
		if strings.Contains(body, "users") || !strings.Contains(body, "drop_table") {
			t.Errorf("%s", body)
		}
	}
}

func TestPagerDuty_RequestThatEndedIsResolvedAndNotTriggered(t *testing.T) {
	r := newReceiver(t, "/v2/enqueue")
	late := page()
	late.Card.State = desk.StateDecided
	if _, err := newPagerDuty(t, r).Send(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if got := pagerDutyEvent(t, r.bodies[0]); got["action"] != "resolve" {
		t.Errorf("%v", got)
	}
}

func TestPagerDuty_Errors(t *testing.T) {
	r := newReceiver(t, "/v2/enqueue")
	p := newPagerDuty(t, r)
	for status, want := range map[int]channel.Error{
		400: {Code: "http_400", Permanent: true},
		429: {Code: "rate_limited", RetryAfter: 7 * time.Second},
		503: {Code: "http_503", RetryAfter: 7 * time.Second},
	} {
		r.status, r.header = status, http.Header{"Retry-After": {"7"}}
		_, err := p.Send(t.Context(), page())
		got, ok := errors.AsType[*channel.Error](err)
		if !ok || got.Code != want.Code || got.Permanent != want.Permanent || !want.Permanent && got.RetryAfter != want.RetryAfter {
			t.Errorf("%d: %+v", status, err)
		}
	}
	unknown := page()
	unknown.To = "other"
	if _, err := p.Send(t.Context(), unknown); !channelerror.IsPermanent(err) {
		t.Errorf("an unknown target: %v", err)
	}
	r.Close()
	if _, err := p.Send(t.Context(), page()); err == nil || channelerror.IsPermanent(err) || desk.NoticeFailureCode(err) != "unreachable" {
		t.Errorf("no server: %v", err)
	}
	for _, config := range []pager.PagerDutyConfig{{}, {RoutingKeys: map[string]string{"db": ""}}, {RoutingKeys: map[string]string{"db": "R0"}, URL: "http://10.0.0.1/"}} {
		if _, err := pager.NewPagerDuty(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}

func TestAlertmanager_FiresAndResolvesOneAlert(t *testing.T) {
	r := newReceiver(t, "/api/v2/alerts")
	a, err := pager.NewAlertmanager(pager.AlertmanagerConfig{URL: r.URL + "/", Token: "t0", Labels: map[string]string{"team": "ops"}, Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	first, end := page(), page()
	end.Kind, end.Card.At = desk.NoticeResolve, noon.Add(time.Hour)
	for _, m := range []channel.Message{first, end} {
		if _, err := a.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	type alert struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
	}
	var fired, resolved []alert
	if err := errors.Join(json.Unmarshal([]byte(r.bodies[0]), &fired), json.Unmarshal([]byte(r.bodies[1]), &resolved)); err != nil || len(fired) != 1 || len(resolved) != 1 {
		t.Fatalf("%v: %s", err, r.bodies)
	}
	if r.token != "Bearer t0" || fired[0].Labels["team"] != "ops" || fired[0].Labels["receiver"] != "db" || !fired[0].EndsAt.After(noon.Add(24*time.Hour)) {
		t.Errorf("fired %+v", fired[0])
	}
	if !resolved[0].EndsAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("resolved %+v", resolved[0])
	}
	// Alertmanager identifies an alert by its labels.
	one, _ := json.Marshal(fired[0].Labels)
	two, _ := json.Marshal(resolved[0].Labels)
	if string(one) != string(two) {
		t.Errorf("labels %s and %s", one, two)
	}
}
