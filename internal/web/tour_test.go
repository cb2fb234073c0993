package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

func TestTour_IsShownUntilClosed(t *testing.T) {
	s := open(t, func(c *webtest.Config) {
		c.Site = func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Tour: true}) }
	})
	b := s.SignIn("ann")
	want(t, b.Get("/inbox"), http.StatusOK, "What to try", `action="/tour/close"`)
	if got := b.Follow(b.Post("/tour/close")); strings.Contains(got.Body, "What to try") {
		t.Error("a closed tour is shown")
	}
	want(t, s.SignIn("bob").Get("/inbox"), http.StatusOK, "What to try")
}

func TestTour_IsOnlyForTheDemo(t *testing.T) {
	if got := open(t).SignIn("ann").Get("/inbox"); strings.Contains(got.Body, "tour") {
		t.Error("the tour is shown")
	}
}

// Cookies of the pages are for TLS and this host only if the public address has TLS, also if a
// proxy in front of the server has the certificate.
func TestTour_CookieIsSecureBehindAProxy(t *testing.T) {
	for public, tls := range map[string]bool{"https://fermata.example": true, "http://fermata.example": false} {
		s := open(t, func(c *webtest.Config) {
			c.Site = func(api http.Handler) (http.Handler, error) {
				return web.New(web.Config{API: api, Tour: true, PublicURL: public})
			}
		})
		c, err := http.ParseSetCookie(s.SignIn("ann").Post("/tour/close").Header.Get("Set-Cookie"))
		if err != nil || c.Secure != tls || strings.HasPrefix(c.Name, "__Host-") != tls {
			t.Errorf("%s: %+v, %v", public, c, err)
		}
	}
}
