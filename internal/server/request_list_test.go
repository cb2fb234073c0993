package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server"
)

// pageOf reads a page of requests.
func (s *site) pageOf(query string) (page api.Page[api.Request]) {
	s.Helper()
	got := s.call("approver@acme", "GET", "/api/v1/requests?"+query, "")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		s.Fatalf("%s: %d %.300s: %v", query, got.status, got.body, err)
	}
	return page
}

func keysOf(page api.Page[api.Request]) string {
	var keys []string
	for _, r := range page.Items {
		keys = append(keys, r.StateKey)
	}
	return strings.Join(keys, " ")
}

func (s *site) askMany(n int, kind func(i int) string) {
	for i := range n {
		body := fmt.Sprintf(`{"stateKey":"k%02d","kind":%q,"data":{"order":%d,"note":"caf\u00e9"}}`, i, kind(i), i)
		if got := s.call("agent@acme", "POST", "/api/v1/requests", body); got.status >= 300 {
			s.Fatalf("%d %.300s", got.status, got.body)
		}
	}
}

func TestRequests_Search(t *testing.T) {
	s := open(t, nil)
	s.askMany(6, func(i int) string { return []string{"color", "size"}[i%2] })
	first := s.pageOf("limit=1").Items[0]
	s.call("approver@acme", "POST", "/api/v1/requests/"+first.ID+"/decision", `{"resumeId":"1","answer":"red"}`)
	for query, want := range map[string]string{
		"":                       "k01 k02 k03 k04 k05",
		"kind:size":              "k01 k03 k05",
		"kind:s*":                "k01 k03 k05",
		"-kind:size":             "k02 k04",
		"run:k03":                "k03",
		"run:k00":                "",
		"run:nothing":            "",
		"id:nothing":             "",
		"café is:mine":           "k01 k02 k03 k04 k05",
		"teapot":                 "",
		"age:<1h kind:size":      "k01 k03 k05",
		"age:>1h":                "",
		"is:decided":             "k00",
		"is:decided kind:color":  "k00",
		"is:decided kind:size":   "",
		"is:decided by:ap":       "k00",
		"is:groups":              "",
		"is:claimed":             "",
		"-is:open":               "k00",
		"id:" + first.ID:         "",
		"is:done id:" + first.ID: "k00",
	} {
		if got := keysOf(s.pageOf("q=" + url.QueryEscape(query))); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := keysOf(s.pageOf("order=newest&state=all")); got != "k05 k04 k03 k02 k01 k00" {
		t.Errorf("newest first: %s", got)
	}
	if got := keysOf(s.pageOf("state=withdrawn")); got != "" {
		t.Errorf("withdrawn: %s", got)
	}
	got := s.call("approver@acme", "GET", "/api/v1/requests?q=tol:x", "")
	if got.status != 400 || !strings.Contains(got.body, `did you mean \"tool:\"?`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestRequests_PagesForwardAndBack(t *testing.T) {
	s := open(t, nil)
	s.askMany(7, func(int) string { return "color" })
	for _, order := range []string{"oldest", "newest"} {
		var pages []api.Page[api.Request]
		for cursor := ""; ; {
			page := s.pageOf("limit=3&order=" + order + "&cursor=" + cursor)
			if pages = append(pages, page); page.Next == "" || len(pages) > 5 {
				break
			}
			cursor = page.Next
		}
		if len(pages) != 3 || len(pages[2].Items) != 1 || pages[0].Previous != "" {
			t.Fatalf("%s: %d pages", order, len(pages))
		}
		for i := 2; i > 0; i-- {
			back := s.pageOf("limit=3&order=" + order + "&cursor=" + pages[i].Previous)
			if keysOf(back) != keysOf(pages[i-1]) || (back.Previous == "") != (i == 1) {
				t.Errorf("%s: before page %d is %q (previous %q), want %q", order, i, keysOf(back), back.Previous, keysOf(pages[i-1]))
			}
			if again := s.pageOf("limit=3&order=" + order + "&cursor=" + back.Next); keysOf(again) != keysOf(pages[i]) {
				t.Errorf("%s: after the page before %d is %q, want %q", order, i, keysOf(again), keysOf(pages[i]))
			}
		}
	}
}

// A search reads a bounded number of requests for a page, and says so.
func TestRequests_SearchIsBounded(t *testing.T) {
	s := open(t, nil)
	s.askMany(40, func(i int) string { return map[bool]string{true: "rare", false: "common"}[i == 37] })
	t.Cleanup(server.SetMaxScanned(10))
	for _, order := range []string{"oldest", "newest"} {
		found, pages, empty := "", 0, 0
		for cursor := ""; ; pages++ {
			page := s.pageOf("q=kind:rar*&order=" + order + "&cursor=" + cursor)
			if found += keysOf(page); len(page.Items) == 0 && page.Partial {
				empty++
			}
			if cursor = page.Next; cursor == "" || pages > 50 {
				break
			}
		}
		if found != "k37" || pages > 5 || order == "oldest" && empty == 0 {
			t.Errorf("%s: found %q in %d pages, %d of them empty", order, found, pages, empty)
		}
	}
	if page := s.pageOf("q=kind:rare"); keysOf(page) != "k37" || page.Partial || page.Next != "" {
		t.Errorf("by the index: %q, partial %t", keysOf(page), page.Partial)
	}
}

func TestRequests_Counts(t *testing.T) {
	s := open(t, nil)
	count := func() (c api.RequestCounts) {
		got := s.call("approver@acme", "GET", "/api/v1/requests/counts", "")
		if err := json.Unmarshal([]byte(got.body), &c); err != nil || got.status != 200 {
			t.Fatalf("%d %.300s: %v", got.status, got.body, err)
		}
		return c
	}
	s.askMany(5, func(int) string { return "color" })
	if c := count(); c.Open.Count != 5 || c.Mine.Count != 5 || c.Open.More || c.Decided.Count != 0 || c.Groups.Count != 0 {
		t.Errorf("%+v", c)
	}
	first := s.pageOf("limit=1").Items[0]
	s.call("approver@acme", "POST", "/api/v1/requests/"+first.ID+"/decision", `{"resumeId":"1","answer":"red"}`)
	if c := count(); c.Open.Count != 4 || c.Decided.Count != 1 || c.Decided.More {
		t.Errorf("after a decision: %+v", c)
	}
	t.Cleanup(server.SetMaxScanned(2))
	s.askMany(6, func(int) string { return "color" }) // one of them is new
	if c := count(); c.Open != (api.BoundedCount{Count: 2, More: true}) {
		t.Errorf("with a bound of 2: %+v", c)
	}
}

func TestSavedViews(t *testing.T) {
	s := open(t, nil)
	const path = "/api/v1/me/views"
	made := s.call("approver@acme", "POST", path, `{"name":"Late","query":"is:mine age:>1h"}`)
	var view api.SavedView
	if err := json.Unmarshal([]byte(made.body), &view); err != nil || made.status != 201 || view.ID == "" || view.Query != "is:mine age:>1h" {
		t.Fatalf("%d %s: %v", made.status, made.body, err)
	}
	for body, want := range map[string]string{
		`{"name":"Late","query":"tea"}`:    "choose another one",
		`{"name":"Other","query":"tol:x"}`: "did you mean",
		`{"name":"","query":"tea"}`:        "name",
	} {
		if got := s.call("approver@acme", "POST", path, body); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := s.call("approver@acme", "PUT", path+"/"+view.ID, `{"name":"Old","query":"older:2d"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.call("approver@acme", "GET", path, ""); !strings.Contains(got.body, `"Old"`) || strings.Contains(got.body, `"Late"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, other := range []string{"approver@other", "auditor@acme"} {
		if got := s.call(other, "GET", path, ""); strings.Contains(got.body, "Old") {
			t.Errorf("%s sees %s", other, got.body)
		}
		if got := s.call(other, "DELETE", path+"/"+view.ID, ""); got.status != 404 {
			t.Errorf("%s deletes it: %d", other, got.status)
		}
	}
	if got := s.call("approver@acme", "DELETE", path+"/"+view.ID, ""); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
