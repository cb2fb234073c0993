package web_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// room is a channel that rejects messages to one address.
type room struct{}

func (room) Kind() string { return "teams" }
func (room) Send(_ context.Context, m channel.Message) (string, error) {
	if m.To == "gone" {
		return "", &channel.Error{Code: "channel_not_found", Permanent: true, Err: errors.New("secret")}
	}
	return "copy", nil
}

func TestDeliveries_ListHealthAndSendAgain(t *testing.T) {
	s := open(t, func(c *webtest.Config) {
		c.Desk = executor.DeskConfig{Channels: []channel.Channel{room{}}, Routes: map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"teams:ops", "teams:gone"}}, {At: timespan.Duration(time.Hour), Expire: "stale"}}}}}
	})
	admin := s.SignIn("ann")
	want(t, admin.Get("/deliveries"), http.StatusOK, "No deliveries", `href="/deliveries"`)
	ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	wait := func(path string, texts ...string) string {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			got, missing := admin.Get(path), ""
			for _, text := range texts {
				if !strings.Contains(got.Body, text) {
					missing = text
				}
			}
			if missing == "" {
				return got.Body
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q in\n%s", missing, got.Body)
			}
		}
	}
	body := wait("/deliveries", "teams:ops", "teams:gone", "channel_not_found", "Given up", "Microsoft Teams", "Send again")
	if strings.Contains(body, "secret") || strings.Contains(body, "⟪") {
		t.Error(body)
	}
	dead := wait("/deliveries?state=dead", "teams:gone")
	if strings.Contains(dead, "teams:ops") {
		t.Error("a sent delivery is in the list of those that were given up")
	}
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(dead)
	want(t, admin.Follow(admin.Post("/deliveries/again", "id", id[1])), http.StatusOK, "The delivery is sent again")
	wait("/deliveries?state=dead", "teams:gone") // it fails again
	want(t, admin.Get("/deliveries?state=none"), http.StatusNotFound)
	auditor := s.SignIn("eve", authn.RoleAuditor)
	got := auditor.Get("/deliveries")
	want(t, got, http.StatusOK, "teams:g•••e")
	if strings.Contains(got.Body, "Send again") {
		t.Error("an auditor can send a delivery again")
	}
	want(t, auditor.Post("/deliveries/again", "id", id[1]), http.StatusForbidden)
}
