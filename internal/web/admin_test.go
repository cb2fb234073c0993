package web_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var linkBox = regexp.MustCompile(`linkbox"[^>]*>http://[^/]+(/signin/invitation\?token=[^<]+)<`)

func TestAdmin_InviteRemoveEnd(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	want(t, b.Get("/admin"), http.StatusOK, "Administration", "listen.addr", "(secret)", "FERMATA_STORE_URL", "this session")
	got := b.Post("/admin/members", "name", "bob", "role", "auditor")
	link := linkBox.FindStringSubmatch(got.Body)
	if got.Status != http.StatusOK || link == nil {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	bob := s.Visitor()
	want(t, bob.Get(html.UnescapeString(link[1])), http.StatusOK, "Welcome, bob")
	token := regexp.MustCompile(`name="token" type="hidden" value="([^"]+)"`).FindStringSubmatch(bob.Get(html.UnescapeString(link[1])).Body)[1]
	bob.Post("/signin/invitation", "token", html.UnescapeString(token), "password", "correct horse battery")
	want(t, bob.Get("/me"), http.StatusOK, "auditor", "Sessions", "Password")
	page := b.Get("/admin")
	want(t, page, http.StatusOK, "There is no open invitation.")
	remove := regexp.MustCompile(`action="(/admin/members/[^"]+/remove)"`).FindStringSubmatch(page.Body)
	want(t, b.Follow(b.Post(remove[1])), http.StatusOK, "The member was removed")
	if got := bob.Get("/me"); got.Status != http.StatusUnauthorized {
		t.Errorf("%d", got.Status)
	}
	want(t, b.Post("/admin/members", "name", " x", "role", "auditor"), http.StatusUnprocessableEntity, `role="alert"`, `value=" x"`, `value="auditor" selected`)
}

// The page says which channels are configured, and when each worked and failed last.
func TestAdmin_HealthOfChannels(t *testing.T) {
	at := time.Now().Add(-3 * time.Hour)
	for name, c := range map[string]struct {
		health []api.ChannelHealth
		want   []string
	}{
		"none":   {nil, []string{"No channel is configured"}},
		"unused": {[]api.ChannelHealth{{Channel: "slack", Configured: true}}, []string{"Slack", "never"}},
		"failed": {[]api.ChannelHealth{{Channel: "email", Configured: true, Dead: 2, Code: "smtp_550", LastSentAt: &at, LastFailedAt: &at}}, []string{"E-mail", "smtp_550", "3 h ago", `danger">2<`}},
		"gone":   {[]api.ChannelHealth{{Channel: "pagerduty", Sent: 1}}, []string{"not configured"}},
	} {
		s := open(t, func(config *webtest.Config) {
			config.Site = func(handler http.Handler) (http.Handler, error) {
				return web.New(web.Config{API: webtest.WithAnswer(handler, "/api/v1/deliveries/health", api.Page[api.ChannelHealth]{Items: c.health})})
			}
		})
		t.Run(name, func(t *testing.T) { want(t, s.SignIn("ann").Get("/admin"), http.StatusOK, c.want...) })
	}
}

// Others see no entry in the navigation, and a page that says why.
func TestAdmin_ForAdminsOnly(t *testing.T) {
	b := open(t).SignIn("eve", authn.RoleApprover, authn.RoleAuditor)
	if got := b.Get("/inbox"); strings.Contains(got.Body, `href="/admin"`) {
		t.Error("an entry of the navigation")
	}
	for _, got := range []int{b.Get("/admin").Status, b.Post("/admin/members", "name", "bob", "role", "admin").Status, b.Post("/admin/keys/x/end").Status} {
		if got != http.StatusForbidden {
			t.Errorf("%d", got)
		}
	}
}
