package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestInbox_ListsAndSelects(t *testing.T) {
	s, _ := openRefunds(t)
	a := ask(t, s, "inproc:refund", "r1", refundInput)
	c := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/inbox"), http.StatusOK, `data-id="`+a+`"`, `data-id="`+c+`"`, `For me <span class="num">2</span>`, "120.00")
	got := b.Get("/inbox?id=" + c)
	want(t, got, http.StatusOK, "Five things about tea", `class="inbox chosen"`, "from=inbox")
	form := b.Get("/requests/" + a + "/approve?from=inbox")
	if got := b.Post("/requests/"+a+"/approve", hidden(form)...); got.Header.Get("Location") != "/inbox" {
		t.Errorf("%v", got.Header)
	}
	want(t, b.Get("/inbox?tab=done"), http.StatusOK, "Approved", `data-id="`+a+`"`)
	if got := b.Get("/inbox"); strings.Contains(got.Body, `data-id="`+a+`"`) {
		t.Error("a decided request is still in the queue")
	}
}

func TestInbox_Search(t *testing.T) {
	s, _ := openRefunds(t)
	a := ask(t, s, "inproc:refund", "r1", refundInput)
	c := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	for query, found := range map[string]string{
		"tool:refund": a, "kind:content": c, "tea": c, "run:r1": a, "graph:refund age:<1h": a, "age:>1h": "", "risk:high": "", "left:<1h 120.00": "",
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
	want(t, b.Get("/inbox?q=age:old"), http.StatusOK, "age:&gt;1h")
}

func TestInbox_Empty(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/inbox"), http.StatusOK, "Nothing is waiting for you", "fermata run")
}
