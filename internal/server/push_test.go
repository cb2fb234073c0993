package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/pushfake"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

func newWebPush(t *testing.T) *webpush.Channel {
	t.Helper()
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := webpush.New(webpush.Config{Key: key, Subject: "mailto:ops@example.com", Allow: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const pushPath = "/api/v1/me/push-subscriptions"

func pushBody(name string, b pushfake.Browser) string {
	return fmt.Sprintf(`{"name":%q,"endpoint":%q,"keys":{"p256dh":%q,"auth":%q}}`, name, b.Endpoint, b.P256DH, b.Auth)
}

func TestPush_AddListRemove(t *testing.T) {
	c := newWebPush(t)
	s := open(t, func(config *server.Config) { config.WebPush = c })
	service := pushfake.New()
	peer := httptest.NewServer(service)
	t.Cleanup(peer.Close)
	if got := s.call("approver@acme", "GET", "/api/v1/me/push-key", ""); got.status != 200 || !strings.Contains(got.body, c.PublicKey()) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	b := service.Subscribe(peer.URL, c.PublicKey())
	var added api.PushSubscription
	for range 2 { // the second replaces the first
		got := s.call("approver@acme", "POST", pushPath, pushBody("Laptop", b))
		if err := json.Unmarshal([]byte(got.body), &added); err != nil || got.status != 200 || added.Service != "127.0.0.1" || added.Name != "Laptop" {
			t.Fatalf("%d %s, %v", got.status, got.body, err)
		}
	}
	for who, want := range map[string]int{"approver@acme": 1, "approver@other": 0, "auditor@acme": 0} {
		got := s.call(who, "GET", pushPath, "")
		var list api.Page[api.PushSubscription]
		if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != 200 || len(list.Items) != want {
			t.Errorf("I8: %s: %d %s, %v", who, got.status, got.body, err)
		}
		if strings.Contains(got.body, b.Auth) || strings.Contains(got.body, b.P256DH) || strings.Contains(got.body, b.Endpoint) {
			t.Errorf("a secret of the subscription is shown: %s", got.body)
		}
	}
	for name, bad := range map[string]pushfake.Browser{
		"private": {Endpoint: "https://10.0.0.1/push", P256DH: b.P256DH, Auth: b.Auth},
		"http":    {Endpoint: "http://push.example.com/", P256DH: b.P256DH, Auth: b.Auth},
		"key":     {Endpoint: "https://push.example.com/", P256DH: b.Auth, Auth: b.Auth},
	} {
		if got := s.call("approver@acme", "POST", pushPath, pushBody("x", bad)); got.status != 400 || strings.Contains(got.body, "10.0.0.1") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.call("agent@acme", "POST", pushPath, pushBody("x", b)); got.status != 403 {
		t.Errorf("an agent: %d", got.status)
	}
	for i := range 19 {
		if got := s.call("approver@acme", "POST", pushPath, pushBody(fmt.Sprint(i), service.Subscribe(peer.URL, c.PublicKey()))); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := s.call("approver@acme", "POST", pushPath, pushBody("one too many", service.Subscribe(peer.URL, c.PublicKey()))); got.status != 409 || !strings.Contains(got.body, "too many") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.call("auditor@acme", "DELETE", pushPath+"/"+added.ID, ""); got.status != 404 {
		t.Errorf("I8: another person removed it: %d", got.status)
	}
	if got := s.call("approver@acme", "DELETE", pushPath+"/"+added.ID, ""); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.call("approver@acme", "DELETE", pushPath+"/"+added.ID, ""); got.status != 404 {
		t.Errorf("twice: %d", got.status)
	}
}

func TestPush_NotConfigured(t *testing.T) {
	s := open(t, nil)
	if got := s.call("approver@acme", "GET", "/api/v1/me/push-key", ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.call("approver@acme", "POST", pushPath, pushBody("x", pushfake.Browser{Endpoint: "https://push.example.com/"})); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// The browsers of a removed member are not notified any more, and the audit log names the member.
func TestMembers_RemovalEndsNotifications(t *testing.T) {
	p := openPasskeySite(t)
	p.member("bob")
	for _, to := range []string{"one", "two"} {
		if _, err := p.e.AddAddress(t.Context(), "acme", desk.From{Actor: desk.Actor{ID: "bob", Kind: desk.ActorHuman}}, webpush.Kind, to, to); err != nil {
			t.Fatal(err)
		}
	}
	admin := p.key("acme", authn.RoleAdmin)
	var list api.Page[api.Member]
	if err := json.Unmarshal([]byte(p.call(admin, "GET", "/api/v1/members", "").body), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := p.call(admin, "DELETE", "/api/v1/members/"+list.Items[0].ID, ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	if person, err := p.e.Person(t.Context(), "acme", "bob"); err != nil || len(person.Addresses) != 0 {
		t.Errorf("addresses %+v, %v", person.Addresses, err)
	}
	if log := p.call(admin, "GET", "/api/v1/audit", "").body; strings.Count(log, `"what":"address_removed","channel":"webpush","person":"bob"`) != 2 {
		t.Errorf("audit log: %s", log)
	}
}
