package channeltest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/adversarialtext"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/pushfake"
	"github.com/fermata-go/fermata/internal/store"
)

// pushSubject is a browser at a loopback push service.
type pushSubject struct {
	channeltest.Subject
	service *pushfake.Service
	browser pushfake.Browser
	url     string
}

func newPushSubject(t testing.TB) pushSubject {
	service := pushfake.New()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if err := service.Err(); err != nil {
			t.Errorf("rejected: %v", err)
		}
	})
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := webpush.New(webpush.Config{Key: key, Subject: "mailto:ops@example.com", Allow: []string{loopback}})
	if err != nil {
		t.Fatal(err)
	}
	browser := service.Subscribe(server.URL, c.PublicKey())
	s, err := c.Subscribe(webpush.Subscription{Endpoint: browser.Endpoint, P256DH: browser.P256DH, Auth: browser.Auth})
	if err != nil {
		t.Fatal(err)
	}
	unknown := s
	unknown.Endpoint = server.URL + "/push/none"
	fail := func(f channeltest.Failure) {
		switch f.Kind {
		case channeltest.LoseResponse:
			service.LoseResponse()
		case channeltest.RateLimited:
			service.Fail(http.StatusTooManyRequests, strconv.Itoa(int(f.RetryAfter/time.Second)))
		case channeltest.Temporary:
			service.Fail(http.StatusServiceUnavailable, "")
		case channeltest.Permanent:
			service.Fail(http.StatusForbidden, "")
		}
	}
	// a line of the body is one fact
	harmless := func(t testing.TB, p adversarialtext.Payload, c, plain channeltest.Copy) {
		if got, want := strings.Count(c.Text, "\n"), strings.Count(plain.Text, "\n"); got > want {
			t.Errorf("%s: %d lines; want %d: %s", p.Name, got, want, c.Text)
		}
	}
	return pushSubject{channeltest.Subject{
		Channel: c, To: s.Address(), Unknown: unknown.Address(), Fail: fail, Harmless: harmless, NoUpdates: true,
		Copies: func() []channeltest.Copy { return shown(t, service.Messages(browser)) },
	}, service, browser, server.URL}
}

func openWebPush(t testing.TB) channeltest.Subject { return newPushSubject(t).Subject }

// shown returns the notifications after some messages, as the service worker shows them.
func shown(t testing.TB, messages []pushfake.Message) (copies []channeltest.Copy) {
	t.Helper()
	var tags []string
	for _, m := range messages {
		var n struct {
			Title, Body, Tag, Path string
			Quiet                  bool
		}
		if err := json.Unmarshal(m.Data, &n); err != nil || n.Title == "" || n.Tag == "" || !strings.HasPrefix(n.Path, "/requests/") {
			t.Errorf("notification %s: %v", m.Data, err)
		}
		title := strings.ToLower(n.Title)
		c := channeltest.Copy{Text: n.Title + "\n" + n.Body + "\nhttps://fermata.example" + n.Path}
		c.Ended = strings.HasPrefix(title, "rejected") || strings.HasPrefix(title, "approved") || strings.HasPrefix(title, "withdrawn")
		if i := slices.Index(tags, n.Tag); i >= 0 {
			copies[i] = c
			continue
		}
		tags, copies = append(tags, n.Tag), append(copies, c)
	}
	return copies
}

// Each browser of a person is notified once by two replicas, and told the end. A subscription that
// has ended is removed, and a push service that asks for a pause gets the message later.
func TestReplicas_WebPushReachesTheBrowsersOfAPerson(t *testing.T) {
	onStores(t, func(t *testing.T, open func() store.Store) {
		s := newPushSubject(t)
		second, ended := s.add(t), s.add(t)
		s.service.End(ended.browser)
		r := openReplicas(t, open, []desk.Step{{Notify: []string{"user:ann"}}}, s.Channel)
		ann := desk.From{Actor: desk.Actor{ID: "ann", Kind: desk.ActorHuman}}
		for name, to := range map[string]string{"Laptop": s.To, "Phone": second.to, "Old": ended.to} {
			if _, err := r.all[0].AddAddress(t.Context(), "acme", ann, webpush.Kind, to, name); err != nil {
				t.Fatal(err)
			}
		}
		s.service.Fail(http.StatusTooManyRequests, "1")
		id := r.ask(t, "refund-1")
		until(t, "both browsers are notified", func() bool {
			return len(s.service.Messages(s.browser)) == 1 && len(s.service.Messages(second.browser)) == 1
		})
		until(t, "the ended subscription is removed", func() bool {
			p, err := r.all[1].Person(t.Context(), "acme", "ann")
			return err == nil && len(p.Addresses) == 2
		})
		m := s.service.Messages(s.browser)[0]
		if m.TTL <= 0 || m.TTL > time.Hour || m.Urgency != "normal" {
			t.Errorf("TTL %v, urgency %s; the deadline is in an hour", m.TTL, m.Urgency)
		}
		r.approve(t, "refund-1", id)
		for _, browser := range []pushfake.Browser{s.browser, second.browser} {
			until(t, "the browser is told the end", func() bool {
				all := shown(t, s.service.Messages(browser))
				return len(all) == 1 && all[0].Ended
			})
			if n := len(s.service.Messages(browser)); n != 2 {
				t.Errorf("%d messages", n)
			}
		}
	})
}

// pushBrowser is a further browser of a person.
type pushBrowser struct {
	browser pushfake.Browser
	to      string
}

func (s pushSubject) add(t testing.TB) pushBrowser {
	t.Helper()
	c := s.Channel.(*webpush.Channel)
	browser := s.service.Subscribe(s.url, c.PublicKey())
	subscription, err := c.Subscribe(webpush.Subscription{Endpoint: browser.Endpoint, P256DH: browser.P256DH, Auth: browser.Auth})
	if err != nil {
		t.Fatal(err)
	}
	return pushBrowser{browser, subscription.Address()}
}

// The target inbox reaches the browsers of the people who can decide the request, and no others.
func TestReplicas_WebPushExtendsTheInbox(t *testing.T) {
	onStores(t, func(t *testing.T, open func() store.Store) {
		s := newPushSubject(t)
		quiet, away := s.add(t), s.add(t)
		r := openReplicas(t, open, []desk.Step{{Notify: []string{desk.TargetInbox}}}, s.Channel)
		now := time.Now()
		for person, browser := range map[string]struct {
			to       string
			settings people.Settings
		}{
			"ann": {s.To, people.Settings{}},
			"bob": {quiet.to, people.Settings{Rules: []people.Rule{{Channels: []string{"slack"}}}}},
			"eve": {away.to, people.Settings{Away: &people.Absence{From: now.Add(-time.Hour), Until: now.Add(time.Hour)}}},
		} {
			from := desk.From{Actor: desk.Actor{ID: person, Kind: desk.ActorHuman}}
			if _, err := r.all[0].AddAddress(t.Context(), "acme", from, webpush.Kind, browser.to, "Laptop"); err != nil {
				t.Fatal(err)
			}
			if _, err := r.all[0].SetNotifications(t.Context(), "acme", from, browser.settings); err != nil {
				t.Fatal(err)
			}
		}
		id := r.ask(t, "refund-1")
		until(t, "the browser is notified", func() bool { return len(s.service.Messages(s.browser)) == 1 })
		r.approve(t, "refund-1", id)
		until(t, "the browser is told the end", func() bool { return len(s.service.Messages(s.browser)) == 2 })
		if n := len(s.service.Messages(pushfake.Browser{})); n != 2 {
			t.Errorf("%d messages to all browsers", n)
		}
		if !slices.ContainsFunc(r.request(t, id).Deliveries, func(d desk.Delivery) bool { return d.Target == desk.TargetInbox }) {
			t.Errorf("delivered to %v", r.request(t, id).Deliveries)
		}
	})
}
