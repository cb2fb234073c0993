package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// reviewView shows content reviews with a template and a custom element of the program.
var reviewView = web.View{
	Kind: "content-review",
	Template: `{{define "sentence"}}<b>{{markLine .From}}</b> {{markLine (text .Data "draft" "content")}}{{end}}
{{define "body"}}<div class="card pad" id="own">{{mark (text .Data "draft" "content")}}</div>{{end}}`,
	Element: "acme-review",
	Script:  []byte(`customElements.define("acme-review", class extends HTMLElement {});`),
}

func TestView_OwnTemplateAndElement(t *testing.T) {
	s := open(t, func(c *webtest.Config) {
		c.Site = func(api http.Handler) (http.Handler, error) {
			return web.New(web.Config{API: api, Views: []web.View{reviewView}})
		}
	})
	id := ask(t, s, "inproc:content-review", "c1", `{"topic":"<tea>"}`)
	b := s.SignIn("ann")
	page := b.Get("/requests/" + id)
	want(t, page, http.StatusOK, `<acme-review><script type="application/json">{`, `id="own">Five things about &lt;tea&gt;`)
	if strings.Contains(page.Body, "<tea>") {
		t.Error("the page has text of the agent as markup")
	}
	script := regexp.MustCompile(`src="([^"]+view-acme-review\.js)"`).FindStringSubmatch(page.Body)
	if script == nil {
		t.Fatal("the page does not load the script of the view")
	}
	want(t, b.Get(script[1]), http.StatusOK, `customElements.define("acme-review"`)
	want(t, b.Get("/inbox"), http.StatusOK, "Five things about &lt;tea&gt;")
}

func TestView_InvalidViewIsAnError(t *testing.T) {
	for _, c := range []struct {
		view web.View
		want string
	}{
		{web.View{}, "no Kind"},
		{web.View{Kind: "x", Template: "{{"}, `view of kind "x"`},
		{web.View{Kind: "x", Element: "plain", Script: []byte("1")}, "not the name of a custom element"},
		{web.View{Kind: "x", Element: "a-b"}, "both Element and Script"},
	} {
		if _, err := web.New(web.Config{API: http.NotFoundHandler(), Views: []web.View{c.view}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.view, err)
		}
	}
}
