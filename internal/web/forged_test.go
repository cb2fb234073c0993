package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/adversarialtext"
	"github.com/fermata-go/fermata/internal/sanitize"
	"github.com/fermata-go/fermata/internal/web"
)

// oneRequest is an API with one request.
type oneRequest struct{ api.Request }

func (o *oneRequest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any = o.Request
	switch r.URL.Path {
	case "/api/v1/me":
		answer = api.Me{Principal: "ann", Account: "acme", Roles: []string{"admin"}}
	case "/api/v1/requests/r1":
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// forgedPage is what the tests look at in the page of a request.
type forgedPage struct {
	elements map[string]int // that a person can use, or that a browser loads
	facts    string         // the text of all facts
	marks    int            // marked characters
	text     strings.Builder
	hidden   []rune // characters that must not be there
	bad      []string
}

// harmless are the elements with which values are rendered.
var harmless = []string{"span", "small", "details", "summary", "b", "dl", "dt", "dd", "ol", "li", "p", "div", "section", "h2", "svg", "use", "blockquote"}

func (p *forgedPage) read(n *html.Node, fact bool) {
	switch n.Type {
	case html.TextNode:
		if fact {
			p.facts += n.Data
		}
		p.check(n.Data)
		p.text.WriteString(n.Data)
	case html.ElementNode:
		if !slices.Contains(harmless, n.Data) {
			p.elements[n.Data]++
		}
		for _, a := range n.Attr {
			p.check(a.Val)
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc":
				p.bad = append(p.bad, n.Data+" "+a.Key)
			case (a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction") && !(strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//")) && !strings.HasPrefix(a.Val, "#"):
				p.bad = append(p.bad, n.Data+" "+a.Key+"="+a.Val)
			case a.Key == "data-fact":
				fact = true
			case a.Key == "class" && a.Val == "flag":
				p.marks++
			}
		}
	}
	for c := range n.ChildNodes() {
		p.read(c, fact)
	}
}

func (p *forgedPage) check(text string) {
	for _, r := range text {
		if r != '\n' && r != '\t' && sanitize.IsHidden(r) {
			p.hidden = append(p.hidden, r)
		}
	}
}

// forgedSite has the pages with one request.
type forgedSite struct {
	*web.Site
	api *oneRequest
}

// show renders the page of an approval with an argument and with texts of the agent.
func (f *forgedSite) show(t *testing.T, argument json.RawMessage, says string) *forgedPage {
	t.Helper()
	at := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	question, err := json.Marshal(fermata.ApprovalRequest{Action: "refund", Summary: says, Args: json.RawMessage(`{"order":17,"note":` + string(argument) + `}`), Fixed: true})
	if err != nil {
		t.Fatal(err)
	}
	note := api.Note{Stamp: api.Stamp{By: "bot", At: at}, Text: says}
	f.api.Request = api.Request{
		ID: "r1", GraphID: "inproc:refund", Kind: fermata.Approval.Name(), Data: question, State: "pending", CreatedAt: at,
		Activity: &api.Activity{State: "open", Verbs: []string{"approve", "reject"}, Comments: []api.Note{note}, Clarifications: []api.Clarification{{Note: note, Reply: &note}}},
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/requests/r1", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %.500s", w.Code, w.Body)
	}
	root, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	p := &forgedPage{elements: make(map[string]int)}
	p.read(root, false)
	return p
}

// Each payload is marked or harmless in the page, whether it is an argument or text of the agent.
// Text of the agent is never part of a fact.
func TestRequest_ForgedPayloads(t *testing.T) {
	all := adversarialtext.All()
	if len(all) < 200 {
		t.Fatalf("%d payloads", len(all))
	}
	f := &forgedSite{api: &oneRequest{}}
	var err error
	if f.Site, err = web.New(web.Config{API: f.api}); err != nil {
		t.Fatal(err)
	}
	plain := f.show(t, json.RawMessage(`"plain"`), "plain")
	if !strings.Contains(plain.facts, "17") || plain.marks != 0 || plain.elements["a"] == 0 {
		t.Fatalf("%+v", plain)
	}
	for _, payload := range all {
		asArgument := f.show(t, payload.Value, "plain")
		pages := map[string]*forgedPage{"argument": asArgument}
		if payload.Text != "" {
			said := f.show(t, json.RawMessage(`"plain"`), payload.Text)
			pages["text"] = said
			if said.facts != plain.facts {
				t.Errorf("%s: text of the agent changed the facts: %.200q", payload.Name, said.facts)
			}
		}
		for where, p := range pages {
			if !maps.Equal(p.elements, plain.elements) {
				t.Errorf("%s as %s: the page has other elements: %v, want %v", payload.Name, where, p.elements, plain.elements)
			}
			if len(p.bad) > 0 || len(p.hidden) > 0 {
				t.Errorf("%s as %s: %q, hidden characters %U", payload.Name, where, p.bad, p.hidden)
			}
			if payload.Flag && p.marks == 0 {
				t.Errorf("%s as %s: nothing is marked in %.100q", payload.Name, where, payload.Text)
			}
		}
		if payload.Flag && !strings.Contains(asArgument.text.String(), "shown with") {
			t.Errorf("%s: the page does not count the marked characters", payload.Name)
		}
		if payload.Text == "" && len(payload.Value) < 100 && payload.Value[0] != '{' && !strings.Contains(asArgument.facts, string(payload.Value)) {
			t.Errorf("%s: the facts do not show %s", payload.Name, payload.Value)
		}
	}
}
