package channeltest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/channel/pager"
	"github.com/fermata-go/fermata/channel/teams"
	"github.com/fermata-go/fermata/internal/adversarialtext"
)

// loopback is the host of all peers.
const loopback = "127.0.0.1"

// receiver is an HTTP peer. accept decodes a body as strictly as the real peer, and returns the
// copy and its key: a copy with the same key replaces it, unless the key is "".
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	fail   channeltest.Failure
	copies []channeltest.Copy
	keys   []string
}

func newReceiver(t testing.TB, path string, status int, accept func(body []byte) (key string, c channeltest.Copy, err error)) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return // the client went away
		}
		if q.Method != http.MethodPost || q.URL.Path != path || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %s", q.Method, q.URL, q.Header.Get("Content-Type"))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		fail := r.fail
		r.fail = channeltest.Failure{}
		switch fail.Kind {
		case channeltest.RateLimited:
			w.Header().Set("Retry-After", strconv.Itoa(int(fail.RetryAfter/time.Second)))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case channeltest.Temporary:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case channeltest.Permanent:
			w.WriteHeader(http.StatusForbidden)
			return
		}
		key, c, err := accept(body)
		if err != nil {
			t.Errorf("rejected: %v: %.2000s", err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.keep(key, c)
		if fail.Kind == channeltest.LoseResponse {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) keep(key string, c channeltest.Copy) {
	if i := slices.Index(r.keys, key); i >= 0 && key != "" {
		r.copies[i] = c
		return
	}
	r.keys, r.copies = append(r.keys, key), append(r.copies, c)
}

func (r *receiver) all() []channeltest.Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.copies)
}

func (r *receiver) setFail(f channeltest.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

// texts returns all texts in a JSON value, with the names of members.
func texts(t testing.TB, data []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Errorf("%v: %s", err, data)
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				all = append(all, name)
				walk(v[name])
			}
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
	walk(value)
	return strings.Join(all, "\n")
}

func openPagerDuty(t testing.TB) channeltest.Subject {
	r := newReceiver(t, "/v2/enqueue", http.StatusAccepted, func(body []byte) (string, channeltest.Copy, error) {
		var event struct {
			RoutingKey string `json:"routing_key"`
			Action     string `json:"event_action"`
			DedupKey   string `json:"dedup_key"`
			Payload    struct{ Summary, Source, Severity string }
		}
		err := json.Unmarshal(body, &event)
		trigger := event.Action == "trigger"
		if err == nil && (event.RoutingKey != "R0" || event.DedupKey == "" || len(event.DedupKey) > 255 || !trigger && event.Action != "resolve" || trigger && (event.Payload.Summary == "" || event.Payload.Source == "" || event.Payload.Severity == "")) {
			err = fmt.Errorf("event %+v", event)
		}
		return event.DedupKey, channeltest.Copy{Text: texts(t, body), Ended: !trigger}, err
	})
	c, err := pager.NewPagerDuty(pager.PagerDutyConfig{RoutingKeys: map[string]string{"db": "R0"}, URL: r.URL + "/v2/enqueue", Allow: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	return channeltest.Subject{Channel: c, To: "db", Unknown: "other", Copies: r.all, Fail: r.setFail, NoFacts: true, NoUpdates: true, NoOutcome: true}
}

func openAlertmanager(t testing.TB) channeltest.Subject {
	r := newReceiver(t, "/api/v2/alerts", http.StatusOK, func(body []byte) (string, channeltest.Copy, error) {
		var alerts []struct {
			Labels           map[string]string
			StartsAt, EndsAt time.Time
		}
		if err := json.Unmarshal(body, &alerts); err != nil {
			return "", channeltest.Copy{}, err
		}
		if len(alerts) != 1 || alerts[0].Labels["alertname"] == "" || alerts[0].EndsAt.Before(alerts[0].StartsAt) {
			return "", channeltest.Copy{}, fmt.Errorf("alerts %+v", alerts)
		}
		// Alertmanager identifies an alert by its labels
		key, err := json.Marshal(alerts[0].Labels)
		return string(key), channeltest.Copy{Text: texts(t, body), Ended: !alerts[0].EndsAt.After(time.Now().Add(time.Hour))}, err
	})
	c, err := pager.NewAlertmanager(pager.AlertmanagerConfig{URL: r.URL, Allow: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	return channeltest.Subject{Channel: c, To: "db", Copies: r.all, Fail: r.setFail, NoFacts: true, NoUpdates: true, NoOutcome: true}
}

func openTeams(t testing.TB) channeltest.Subject {
	r := newReceiver(t, "/workflows/1", http.StatusAccepted, func(body []byte) (string, channeltest.Copy, error) {
		var message struct {
			Type        string
			Attachments []struct {
				ContentType string
				Content     struct {
					Type, Version string
					Body          []map[string]any
					Actions       []struct{ Type, Title, URL string }
				}
			}
		}
		if err := json.Unmarshal(body, &message); err != nil {
			return "", channeltest.Copy{}, err
		}
		if len(body) > 28<<10 || message.Type != "message" || len(message.Attachments) != 1 || message.Attachments[0].Content.Type != "AdaptiveCard" {
			return "", channeltest.Copy{}, fmt.Errorf("%d bytes: %+v", len(body), message)
		}
		c := channeltest.Copy{Text: texts(t, body)}
		title, _ := message.Attachments[0].Content.Body[0]["text"].(string)
		c.Ended = strings.HasPrefix(title, "rejected by") || strings.HasPrefix(title, "approved by") || strings.HasPrefix(title, "withdrawn")
		for _, a := range message.Attachments[0].Content.Actions {
			if a.Type != "Action.OpenUrl" || !strings.HasPrefix(a.URL, "https://fermata.example/requests/") {
				c.Actions = append(c.Actions, a.Title)
			}
		}
		return "", c, nil
	})
	c, err := teams.New(teams.Config{Webhooks: map[string]string{"ops": r.URL + "/workflows/1"}, Allow: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	harmless := func(t testing.TB, p adversarialtext.Payload, c, _ channeltest.Copy) {
		for _, link := range []string{"](http", "](java", "https://evil", "<http"} {
			if strings.Contains(c.Text, link) {
				t.Errorf("%s: the card has a link: %.500s", p.Name, c.Text)
			}
		}
	}
	return channeltest.Subject{
		Channel: c, To: "ops", Unknown: "other", Copies: r.all, Fail: r.setFail, Harmless: harmless, NoReplace: true, NoUpdates: true, NoDuplicateCheck: true,
	}
}
