package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

func TestInbox_ListsAndSelects(t *testing.T) {
	s, _ := openRefunds(t)
	a := ask(t, s, "inproc:refund", "r1", refundInput)
	c := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/inbox"), http.StatusOK, `data-id="`+a+`"`, `data-id="`+c+`"`, `For me <span class="num">2</span>`, "120.00")
	got := b.Get("/inbox?id=" + c)
	want(t, got, http.StatusOK, "Five things about tea", `class="inbox chosen"`, "?list=")
	form := b.Get("/requests/" + a + "/approve?list=")
	if got := b.Post("/requests/"+a+"/approve", hidden(form)...); got.Header.Get("Location") != "/inbox?after="+a {
		t.Errorf("%v", got.Header)
	}
	want(t, b.Get("/inbox?tab=done"), http.StatusOK, "Approved", `data-id="`+a+`"`)
	if got := b.Get("/inbox"); strings.Contains(got.Body, `data-id="`+a+`"`) {
		t.Error("a decided request is still in the queue")
	}
}

// A count that is not complete says so, in the tabs and in the navigation.
func TestInbox_CountsBeyondTheirBoundSaySo(t *testing.T) {
	s := open(t, func(c *webtest.Config) {
		c.Site = func(handler http.Handler) (http.Handler, error) {
			return web.New(web.Config{API: webtest.WithAnswer(handler, "/api/v1/requests/counts", api.RequestCounts{
				Mine: api.BoundedCount{Count: 200, More: true}, Groups: api.BoundedCount{More: true}, Open: api.BoundedCount{Count: 7},
			})})
		}
	})
	b := s.SignIn("ann")
	got := b.Get("/inbox")
	want(t, got, http.StatusOK, `For me <span class="num">200&#43;</span>`, `My groups <span class="num">0&#43;</span>`, `All open <span class="num">7</span>`)
	if strings.Contains(got.Body, `Snoozed <span`) {
		t.Error("a list without requests has a count")
	}
	want(t, b.Get("/inbox/count"), http.StatusOK, `{"count":200,"text":"200+"}`)
}

func TestInbox_Search(t *testing.T) {
	s, _ := openRefunds(t)
	a := ask(t, s, "inproc:refund", "r1", refundInput)
	c := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	for query, found := range map[string]string{
		"tool:refund": a, "kind:content*": c, "is:open tea": c, "-tool:refund": c, "is:decided": "", "tea": c, "run:r1": a, "graph:refund age:<1h": a, "age:>1h": "", "risk:high": "", "left:<1h 120.00": "",
	} {
		got := b.Get("/inbox?q=" + url.QueryEscape(query))
		if got.Status != http.StatusOK {
			t.Fatalf("%s: %d", query, got.Status)
		}
		for _, id := range []string{a, c} {
			if has := strings.Contains(got.Body, `<li class="row selected" data-id="`+id) || strings.Contains(got.Body, `<li class="row" data-id="`+id); has != (id == found) {
				t.Errorf("%s: lists %s: %t", query, id, has)
			}
		}
	}
	want(t, b.Get("/inbox?q=colour:red"), http.StatusOK, "unknown operator")
	want(t, b.Get("/inbox?q=age:old"), http.StatusOK, "write age:&gt;1h")
	want(t, b.Get("/inbox?q=tol:x"), http.StatusOK, "did you mean &#34;tool:&#34;?")
	want(t, b.Get("/inbox"), http.StatusOK, "Search help", "tool:refund", "the action, or a part of its name")
}

// listed returns the ids of the rows of a page.
func listed(body string) (ids []string) {
	for _, m := range regexp.MustCompile(`<li class="row[^"]*" data-id="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func link(body, rel string) string {
	m := regexp.MustCompile(`rel="` + rel + `" href="([^"]+)"`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

func TestInbox_Pages(t *testing.T) {
	s, _ := openRefunds(t)
	for i := range 53 {
		ask(t, s, "inproc:content-review", fmt.Sprintf("c%02d", i), `{"topic":"tea"}`)
	}
	b := s.SignIn("ann")
	first := b.Get("/inbox?q=tea")
	if n := len(listed(first.Body)); n != 50 || link(first.Body, "prev") != "" {
		t.Fatalf("the first page has %d rows", n)
	}
	second := b.Get(link(first.Body, "next"))
	rows := listed(second.Body)
	if len(rows) != 3 || link(second.Body, "next") != "" {
		t.Fatalf("the second page has %d rows", len(rows))
	}
	if chosen := b.Get(html.UnescapeString(regexp.MustCompile(`href="(/inbox[^"]*id=` + rows[1] + `[^"]*)"`).FindStringSubmatch(second.Body)[1])); !slices.Equal(listed(chosen.Body), rows) {
		t.Error("choosing a row leaves the page")
	}
	if back := b.Get(link(second.Body, "prev")); !slices.Equal(listed(back.Body), listed(first.Body)) {
		t.Error("the previous page differs from the first")
	}
	want(t, first, http.StatusOK, `All open <span class="num">53</span>`)
}

func TestInbox_SavedViews(t *testing.T) {
	s, _ := openRefunds(t)
	a := ask(t, s, "inproc:refund", "r1", refundInput)
	c := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/inbox?q=tool:refund"), http.StatusOK, `name="query" value="is:mine tool:refund"`, "Save view")
	saved := b.Post("/inbox/views", "name", "Refunds <1>", "query", "is:mine tool:refund")
	if saved.Status != http.StatusSeeOther {
		t.Fatalf("%d %.500s", saved.Status, saved.Body)
	}
	shown := b.Get(saved.Header.Get("Location"))
	want(t, shown, http.StatusOK, "Refunds &lt;1&gt;</a>", "The view is saved.")
	if got := listed(shown.Body); !slices.Equal(got, []string{a}) {
		t.Errorf("the view lists %v, not %s; the other is %s", got, a, c)
	}
	want(t, b.Post("/inbox/views", "name", "Refunds <1>", "query", "tea"), http.StatusBadRequest, "choose another one", `value="tea"`)
	want(t, b.Post("/inbox/views", "name", "Other", "query", "tol:x"), http.StatusBadRequest, "did you mean")
	path := regexp.MustCompile(`action="(/inbox/views/view_[^"/]+)"`).FindStringSubmatch(b.Get("/inbox/views").Body)[1]
	if got := b.Post(path, "name", "Tea", "query", "tea"); got.Status != http.StatusSeeOther {
		t.Fatalf("%d", got.Status)
	}
	want(t, b.Get("/inbox"), http.StatusOK, "Tea</a>")
	if got := s.SignIn("bob").Get("/inbox"); strings.Contains(got.Body, "Tea</a>") {
		t.Error("another person sees the view")
	}
	b.Post(path + "/delete")
	if got := b.Get("/inbox"); strings.Contains(got.Body, "Tea</a>") {
		t.Error("the view was not deleted")
	}
}

func TestInbox_Empty(t *testing.T) {
	got := open(t).SignIn("ann").Get("/inbox")
	want(t, got, http.StatusOK, "Nothing is waiting for you")
	if strings.Contains(got.Body, "fermata run") {
		t.Error("an approver is told to start a run on the command line")
	}
}

// Browsers report each response with an error to the person. A row that is not for them is none.
func TestInbox_RowOfOtherRequestIsEmpty(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	id := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	want(t, b.Get("/inbox/rows/"+id), http.StatusOK, `data-id="`+id)
	for _, path := range []string{"/inbox/rows/int_unknown", "/inbox/rows/" + id + "?q=tool:refund"} {
		if got := b.Get(path); got.Status != http.StatusNoContent || got.Body != "" {
			t.Errorf("%s: %d %q", path, got.Status, got.Body)
		}
	}
}
