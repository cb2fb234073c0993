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
