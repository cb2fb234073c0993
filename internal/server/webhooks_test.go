package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/webhook"
)

// hook is a receiver of events. It verifies each message with the Standard Webhooks library.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	secrets []string // each must verify
	status  int
	ids     map[string]bool
	events  []webhook.Event
	bodies  []string
}

func openHook(t *testing.T) *hook {
	h := &hook{status: http.StatusNoContent, ids: make(map[string]bool)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, secret := range h.secrets {
			v, err := standardwebhooks.NewWebhook(secret)
			if err == nil {
				err = v.Verify(body, r.Header)
			}
			if err != nil {
				t.Errorf("not verified: %v", err)
			}
		}
		if h.status == http.StatusNoContent && !h.ids[r.Header.Get("webhook-id")] {
			var e webhook.Event
			if err := json.Unmarshal(body, &e); err != nil || r.Header.Get("Content-Type") != "application/cloudevents+json" {
				t.Errorf("%v: %s", err, body)
			}
			h.ids[r.Header.Get("webhook-id")] = true
			h.events, h.bodies = append(h.events, e), append(h.bodies, string(body))
		}
		w.WriteHeader(h.status)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) set(status int, secrets ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.secrets = status, secrets
}

// types returns the types of the received events.
func (h *hook) types() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		all = append(all, strings.TrimPrefix(e.Type, "fermata."))
	}
	return all
}

func allowLoopback(t *testing.T) func(*executor.Config) {
	sender, err := webhook.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *executor.Config) {
		c.Webhooks, c.Desk.Environment, c.Desk.BaseURL = sender, "prod", "https://fermata.example"
	}
}

// subscribe adds a webhook.
func (s *site) subscribe(body api.SaveWebhook) api.WebhookSecret {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	var made api.WebhookSecret
	if got := s.call("admin@acme", "POST", "/api/v1/webhooks", string(text)); got.status != 201 || json.Unmarshal([]byte(got.body), &made) != nil {
		s.Fatalf("%+v", got)
	}
	return made
}

// visibleToAll leaves the audience out of the rules.
func visibleToAll(t *testing.T) func(*executor.Config) {
	t.Helper()
	set, err := policy.Load("policy.yaml", []byte(strings.Replace(payRules, `    visible_to: ["group:hr", "user:una"]`, "", 1)), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *executor.Config) { c.Desk.Policy = set }
}

// The event of a restricted request has neither arguments nor people.
func TestWebhooks_RestrictedRequestIsOnlyALink(t *testing.T) {
	h := openHook(t)
	s := openPaySite(t, memory.NewStore(nil), allowLoopback(t))
	s.e.StartWorkers()
	made := s.subscribe(api.SaveWebhook{URL: h.URL + "/hook"})
	h.set(http.StatusNoContent, made.Secret)
	s.chat("agent@acme", startPay)
	id := s.openRequests("acme")[0].ID
	s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
	s.until("the request is decided", func() bool { return slices.Contains(h.types(), "request.decided") })
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range h.events {
		r := e.Data.Request
		if r == nil {
			continue
		}
		if r.ID != id || r.Link == "" || r.Action != "" || r.Facts != nil || r.Rules != nil || strings.Contains(h.bodies[i], "fay") || strings.Contains(h.bodies[i], "amount") {
			t.Errorf("%s", h.bodies[i])
		}
	}
}

// A subscription gets the events of requests, runs and effects in order, signed, as CloudEvents,
// without sensitive values.
func TestWebhooks_EventsAreSignedInOrderAndMasked(t *testing.T) {
	eachStore(t, func(t *testing.T, st store.Store) {
		h := openHook(t)
		s := openPaySite(t, st, allowLoopback(t), visibleToAll(t))
		s.e.StartWorkers()
		made := s.subscribe(api.SaveWebhook{URL: h.URL + "/hook"})
		h.set(http.StatusNoContent, made.Secret)
		s.chat("agent@acme", startPay)
		id := s.openRequests("acme")[0].ID
		if got := s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		s.until("the run is completed", func() bool { return slices.Contains(h.types(), "run.completed") })
		h.mu.Lock()
		defer h.mu.Unlock()
		var order []string
		for i, e := range h.events {
			order = append(order, strings.TrimPrefix(e.Type, "fermata."))
			if e.SpecVersion != "1.0" || e.ID == "" || e.Source != "https://fermata.example" || e.Subject == "" || e.Time.IsZero() || e.DataContentType != "application/json" {
				t.Errorf("not a CloudEvent: %s", h.bodies[i])
			}
			if e.Data.Account != "acme" || e.Data.StateKey != "pay-1" || e.Data.Graph != "inproc:pay" || e.Data.Environment != "prod" {
				t.Errorf("data %s", h.bodies[i])
			}
			if strings.Contains(h.bodies[i], card) {
				t.Errorf("I7: a sensitive value is sent: %s", h.bodies[i])
			}
			if strings.HasPrefix(order[i], "request.") && (e.Subject != id || e.Data.Request == nil || e.Data.Request.Action != "pay" || !strings.Contains(h.bodies[i], `"masked":true`)) {
				t.Errorf("request %s", h.bodies[i])
			}
		}
		at := -1
		for _, want := range []string{"run.created", "request.asked", "request.decided", "effect.begun", "effect.ended", "run.completed"} {
			next := slices.Index(order, want)
			if next <= at {
				t.Errorf("%s is missing or too early in %q", want, order)
			}
			at = next
		}
		if log := s.log.String(); strings.Contains(log, made.Secret) || strings.Contains(log, card) {
			t.Error("I7: a secret is in the log")
		}
	})
}

func TestWebhooks_FilterSelectsEvents(t *testing.T) {
	h, other := openHook(t), openHook(t)
	s := openPaySite(t, memory.NewStore(nil), allowLoopback(t), visibleToAll(t))
	s.e.StartWorkers()
	made := s.subscribe(api.SaveWebhook{URL: h.URL, Types: []string{"request.decided", "effect.*"}, Kinds: []string{"approval"}, Graphs: []string{"inproc:pay"}, Environments: []string{"prod"}})
	h.set(http.StatusNoContent, made.Secret)
	s.subscribe(api.SaveWebhook{URL: other.URL, Graphs: []string{"inproc:buy"}})
	s.subscribe(api.SaveWebhook{URL: other.URL, Environments: []string{"staging"}})
	s.chat("agent@acme", startPay)
	s.call("fay@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
	s.until("the effect is over", func() bool { return slices.Contains(h.types(), "effect.ended") })
	if got := h.types(); !slices.Equal(got, []string{"request.decided", "effect.begun", "effect.ended"}) {
		t.Errorf("events %q", got)
	}
	if got := other.types(); len(got) > 0 {
		t.Errorf("events that are not selected: %q", got)
	}
	for _, bad := range []string{`{"url":"http://10.0.0.1/"}`, `{"url":"https://169.254.169.254/latest"}`, `{"url":"ftp://example.com"}`, `{"url":"https://example.com","types":["request.eaten"]}`, `{"url":"https://ann:hush@example.com"}`} {
		if got := s.call("admin@acme", "POST", "/api/v1/webhooks", bad); got.status != 400 || strings.Contains(got.body, "hush") {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

// After a rotation messages have both signatures. The secrets are not shown again, and no other
// account sees the subscription.
func TestWebhooks_RotationKeepsTwoSecrets(t *testing.T) {
	h := openHook(t)
	s := openPaySite(t, memory.NewStore(nil), allowLoopback(t))
	first := s.subscribe(api.SaveWebhook{URL: h.URL})
	path := "/api/v1/webhooks/" + first.Webhook.ID
	second := decode[api.WebhookSecret](t, s.call("admin@acme", "POST", path+"/rotate", ""))
	if first.Secret == second.Secret || second.Webhook.Secrets != 2 {
		t.Errorf("%+v", second)
	}
	h.set(http.StatusNoContent, first.Secret, second.Secret)
	if got := decode[api.WebhookTest](t, s.call("admin@acme", "POST", path+"/test", "")); !got.Accepted || !slices.Equal(h.types(), []string{webhook.TypeTest}) {
		t.Errorf("%+v, %q", got, h.types())
	}
	third := decode[api.WebhookSecret](t, s.call("admin@acme", "POST", path+"/rotate", ""))
	h.set(http.StatusNoContent, second.Secret, third.Secret)
	if got := decode[api.WebhookTest](t, s.call("admin@acme", "POST", path+"/test", "")); !got.Accepted {
		t.Errorf("%+v", got)
	}
	for _, p := range []string{path, "/api/v1/webhooks"} {
		if got := s.call("admin@acme", "GET", p, ""); got.status != 200 || strings.Contains(got.body, "whsec_") {
			t.Errorf("%s: %+v", p, got)
		}
	}
	for method, p := range map[string]string{"GET": path, "DELETE": path, "POST": path + "/rotate"} {
		if got := s.call("admin@other", method, p, ""); got.status != 404 {
			t.Errorf("I8: %s by another account: %+v", method, got)
		}
	}
	if got := s.call("admin@acme", "DELETE", path, ""); got.status != 204 {
		t.Errorf("%+v", got)
	}
	if got := s.call("admin@acme", "GET", path, ""); got.status != 404 {
		t.Errorf("after it was removed: %+v", got)
	}
	wantWebhookRecords(t, s, first.Webhook.ID, "created", "secret_rotated", "secret_rotated", "removed")
	if got := s.call("admin@acme", "GET", "/api/v1/webhooks", ""); !strings.Contains(got.body, `"items":[]`) {
		t.Errorf("after it was removed: %+v", got)
	}
}

// wantWebhookRecords checks the audit records of a subscription. They have the host of the URL, and
// no secret.
func wantWebhookRecords(t *testing.T, s *site, id string, want ...string) {
	t.Helper()
	log := s.call("auditor@acme", "GET", "/api/v1/audit", "").body
	var got []string
	for line := range strings.Lines(log) {
		var record struct {
			Kind  string `json:"kind"`
			Actor struct {
				ID string `json:"id"`
			} `json:"actor"`
			Body audit.WebhookChanged `json:"body"`
		}
		if !strings.Contains(line, "webhook.changed") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if record.Body.Webhook == id {
			got = append(got, record.Body.What)
		}
		if record.Body.Host != "127.0.0.1" || strings.Contains(line, "whsec_") || !strings.Contains(line, `"admin"`) {
			t.Errorf("%s", line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
}

// A failing receiver is shown with the reason, one that is gone is disabled. Saving it again
// enables it, and it gets the events that it missed.
func TestWebhooks_FailuresAreVisible(t *testing.T) {
	h := openHook(t)
	s := openPaySite(t, memory.NewStore(nil), allowLoopback(t))
	s.e.StartWorkers()
	made := s.subscribe(api.SaveWebhook{URL: h.URL, Types: []string{"run.created"}})
	path := "/api/v1/webhooks/" + made.Webhook.ID
	state := func() api.Webhook { return decode[api.Webhook](t, s.call("admin@acme", "GET", path, "")) }
	h.set(http.StatusServiceUnavailable, made.Secret)
	s.chat("agent@acme", startPay)
	s.until("the failure is shown", func() bool { return state().Failures > 0 })
	if got := state(); got.Code != "http_503" || got.NextAt == nil || got.FailingAt == nil || got.Disabled != "" {
		t.Errorf("%+v", got)
	}
	h.set(http.StatusGone, made.Secret)
	s.until("it is disabled", func() bool { return state().Disabled != "" })
	if got := state(); !strings.Contains(got.Disabled, "410") || got.NextAt != nil {
		t.Errorf("%+v", got)
	}
	h.set(http.StatusNoContent, made.Secret)
	if got := s.call("admin@acme", "PUT", path, `{"url":"`+h.URL+`","types":["run.created"]}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	s.until("the missed event is sent", func() bool { return slices.Equal(h.types(), []string{"run.created"}) })
	s.until("it works", func() bool { got := state(); return got.Failures == 0 && got.SentAt != nil })
}
