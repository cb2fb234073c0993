package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pushfake"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// withWebPush returns a change of the configuration, the channel, and a push service with its URL.
func withWebPush(t *testing.T) (change func(*webtest.Config), c *webpush.Channel, service *pushfake.Service, at string) {
	t.Helper()
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if c, err = webpush.New(webpush.Config{Key: key, Subject: "mailto:ops@example.com", Allow: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	service = pushfake.New()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	return func(config *webtest.Config) {
		config.WebPush, config.Desk = c, executor.DeskConfig{Channels: []channel.Channel{c}}
	}, c, service, server.URL
}

// The form of the script adds a browser, and the list removes it without a script.
func TestMe_BrowsersThatAreNotified(t *testing.T) {
	change, c, service, at := withWebPush(t)
	s := open(t, change)
	b := s.SignIn("ann")
	page := b.Get("/me")
	want(t, page, http.StatusOK, "Notify this browser", `data-push="`+c.PublicKey()+`"`, `data-worker="/push-worker.js"`, "Notifications need JavaScript.", "Browser notifications", "push.js")
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; require-trusted-types-for 'script'; trusted-types fermata-worker") || !strings.HasPrefix(policy, strings.TrimSuffix(web.Policy, "'none'")) {
		t.Errorf("policy %q", policy)
	}
	one := service.Subscribe(at, c.PublicKey())
	if got := b.Post("/me/browsers", "endpoint", one.Endpoint, "p256dh", one.P256DH, "auth", one.Auth); got.Status != http.StatusSeeOther {
		t.Fatalf("%d %.500s", got.Status, got.Body)
	}
	page = b.Get("/me")
	want(t, page, http.StatusOK, "This browser is notified.", "127.0.0.1", `action="/me/browsers/addr_`)
	if strings.Contains(page.Body, one.Auth) || strings.Contains(page.Body, one.Endpoint) {
		t.Error("a secret of the subscription is shown")
	}
	if got := s.SignIn("bob").Get("/me"); strings.Contains(got.Body, "/me/browsers/addr_") {
		t.Error("I8: another person sees the browser")
	}
	_, rest, _ := strings.Cut(page.Body, `action="/me/browsers/`)
	id, _, _ := strings.Cut(rest, "/remove")
	if got := s.SignIn("bob").Post("/me/browsers/" + id + "/remove"); got.Status != http.StatusSeeOther || !strings.Contains(b.Get("/me").Body, id) {
		t.Errorf("I8: another person removed it: %d", got.Status)
	}
	if got := b.Post("/me/browsers/" + id + "/remove"); got.Status != http.StatusSeeOther {
		t.Fatalf("%d %.500s", got.Status, got.Body)
	}
	want(t, b.Get("/me"), http.StatusOK, "The browser is no longer notified.")
	want(t, b.Post("/me/browsers"), http.StatusBadRequest, "Notifications need JavaScript.")
	want(t, b.Post("/me/browsers", "endpoint", "https://10.0.0.1/", "p256dh", one.P256DH, "auth", one.Auth), http.StatusBadRequest, "not allowed")
}

func TestMe_WithoutWebPush(t *testing.T) {
	got := open(t).SignIn("ann").Get("/me")
	if strings.Contains(got.Body, "Notify this browser") || got.Header.Get("Content-Security-Policy") != web.Policy {
		t.Errorf("%v %s", got.Header, got.Body)
	}
}

func TestPushWorker_HasAStablePathAndAStrictPolicy(t *testing.T) {
	got := open(t).Visitor().Get("/push-worker.js")
	want(t, got, http.StatusOK, `const config = {"fallback":"There is news in your inbox","icon":"/static/`, "notificationclick")
	for name, value := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Content-Security-Policy": "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache",
	} {
		if got.Header.Get(name) != value {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
	if strings.Contains(got.Body, "fetch(") {
		t.Error("the service worker calls the server")
	}
}
