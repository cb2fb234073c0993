package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var similarItem = regexp.MustCompile(`(?s)<li><span class="pill.*?</li>`)

// similarItems returns the list of similar decisions of a page.
func similarItems(t *testing.T, page webtest.Response) []string {
	t.Helper()
	want(t, page, http.StatusOK, "What will run")
	_, section, _ := strings.Cut(page.Body, `id="s-similar"`)
	section, _, _ = strings.Cut(section, "</section>")
	return similarItem.FindAllString(section, -1)
}

func wantItem(t *testing.T, item string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(item, text) {
			t.Errorf("no %q in %s", text, item)
		}
	}
}

func refundOf(order int, amount string) string {
	return fmt.Sprintf(`{"order":%d,"payment":1,"amount":%q}`, order, amount)
}

func TestSimilar_ShowsLastDecisionsOfTheTool(t *testing.T) {
	s, _ := openRefunds(t)
	b := s.SignIn("ann")
	act := func(key, amount, act string, fields ...string) {
		path := "/requests/" + ask(t, s, "inproc:refund", key, refundOf(len(key), amount)) + "/" + act
		want(t, b.Follow(b.Post(path, hidden(b.Get(path), fields...)...)), http.StatusOK)
	}
	open := ask(t, s, "inproc:refund", "open", refundOf(99, "100.00"))
	ask(t, s, "inproc:refund", "also-open", refundOf(98, "7"))
	if got := similarItems(t, b.Get("/requests/"+open)); len(got) != 0 {
		t.Fatalf("before the first decision: %q", got)
	}
	act("r", "120.5", "approve")
	act("re", "80.00", "reject", "text", "too much")
	act("ref", "500.00", "edit", "v/order", "3", "v/payment", "1", "v/amount", "100.00", "op", "send")
	table := ask(t, s, "inproc:drop-table", "drop", `{"name":"users","rows":3}`)
	want(t, b.Follow(b.Post("/requests/"+table+"/reject", hidden(b.Get("/requests/"+table+"/reject"), "text", "no")...)), http.StatusOK)
	got := similarItems(t, b.Get("/requests/"+open))
	if len(got) != 3 {
		t.Fatalf("%q", got)
	}
	wantItem(t, got[0], "Approved", "order <b>3</b>", "by ann", "<time")
	if strings.Contains(got[0], "more)") {
		t.Errorf("not what was approved: %s", got[0])
	}
	wantItem(t, got[1], "Rejected", "(20.00 less)", "by ann")
	wantItem(t, got[2], "Approved", "(20.50 more)", "Refund")
	for i := range 4 {
		act(strings.Repeat("x", i+10), "1", "approve")
	}
	if got := similarItems(t, b.Get("/requests/"+open)); len(got) != 5 {
		t.Errorf("%d decisions", len(got))
	}
}

// A search that fails or hangs leaves the page as it is.
func TestSimilar_FailedSearchDoesNotBreakThePage(t *testing.T) {
	for name, search := range map[string]http.HandlerFunc{
		"fails": failing{http.StatusInternalServerError}.ServeHTTP,
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			called := false
			s := open(t, func(c *webtest.Config) {
				c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {}))
				c.Site = func(api http.Handler) (http.Handler, error) {
					return web.New(web.Config{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/api/v1/requests" && strings.Contains(r.URL.Query().Get("q"), "is:decided") {
							called = true
							search(w, r)
							return
						}
						api.ServeHTTP(w, r)
					})})
				}
			})
			id := ask(t, s, "inproc:refund", "r1", refundInput)
			got := s.SignIn("ann").Get("/requests/" + id)
			if items := similarItems(t, got); len(items) != 0 || !called {
				t.Errorf("%q, the search was called: %v", items, called)
			}
		})
	}
}
