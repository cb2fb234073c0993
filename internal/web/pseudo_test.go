package web_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var (
	verbOrLetter = regexp.MustCompile(`%(?:\[\d+\])?[+#]?[a-z%]|\pL`)
	shortened    = regexp.MustCompile(`\w+…\w+|\b[0-9a-f]{12}\b`) // ids and digests, as templates and audit.Digest.Short cut them
	latinWords   = regexp.MustCompile(`[A-Za-z]+(?: +[A-Za-z]+)*`)
)

// letters are what pseudo writes for each letter of a language. They are not in the data.
var letters = map[string]string{language.English: "é", language.German: "ø"}

// pseudo translates a text of a language: it has no letter of the alphabet of the data.
func pseudo(language, text string) string {
	return verbOrLetter.ReplaceAllStringFunc(text, func(part string) string {
		if len(part) > 1 {
			return part
		}
		return letters[language]
	})
}

// recorder is an API that keeps what it returned: the data of a page.
type recorder struct {
	http.Handler
	mu   sync.Mutex
	data strings.Builder
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if strings.HasSuffix(q.URL.Path, "/events") {
		r.Handler.ServeHTTP(w, q)
		return
	}
	answer := httptest.NewRecorder()
	r.Handler.ServeHTTP(answer, q)
	r.mu.Lock()
	r.data.WriteString(answer.Body.String() + "\n")
	r.mu.Unlock()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// take returns the data since the last call, one space between two words.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	data := r.data.String()
	r.data.Reset()
	// A JSON text within a JSON text has its quotes escaped.
	data = regexp.MustCompile(`\\+(u[0-9a-f]{4}|.)`).ReplaceAllString(data, " ")
	// Names of fields are shown as words.
	data += " | " + regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(data, "$1 $2")
	return " " + strings.ToLower(strings.Join(latinWords.FindAllString(data, -1), " | ")) + " "
}

// untranslated returns the texts of a page with words that are neither translated nor data.
func untranslated(page, data string) (found []string) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	check := func(where, text string) {
		for _, words := range latinWords.FindAllString(shortened.ReplaceAllString(text, ""), -1) {
			words = strings.ToLower(strings.Join(strings.Fields(words), " "))
			if len(words) > 1 && !slices.Contains([]string{"utc", "true", "false"}, words) && !strings.Contains(data, " "+words+" ") {
				found = append(found, where+": "+words)
			}
		}
	}
	var read func(n *html.Node)
	read = func(n *html.Node) {
		switch n.Type {
		case html.TextNode:
			check("<"+n.Parent.Data+">", n.Data)
		case html.ElementNode:
			for _, a := range n.Attr {
				switch {
				case a.Key == "translate" && a.Val == "no", a.Key == "xmlns", a.Key == "class" && a.Val == "flag": // a drawing of a graph, the name of a character
					return
				case slices.Contains([]string{"title", "placeholder", "alt", "aria-label"}, a.Key) || strings.HasPrefix(a.Key, "data-text-"):
					check(a.Key, a.Val)
				}
			}
			if slices.Contains([]string{"script", "style", "kbd"}, n.Data) {
				return
			}
		}
		for c := range n.ChildNodes() {
			read(c)
		}
	}
	read(root)
	return found
}

// A page shows texts of the viewer's language and data, which is what the API returned for it, but
// no texts of another language.
func TestTexts_PagesShowOnlyTranslatedTextsAndData(t *testing.T) {
	api := new(recorder)
	s := open(t, withPolicy(t), func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {}))
		withAssistant(t, c)
		c.Site = func(handler http.Handler) (http.Handler, error) {
			api.Handler = handler
			return web.NewTranslated(web.Config{API: api, Tour: true, Chat: true, Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }}, pseudo)
		}
	})
	b := s.SignIn("ann")
	approval := ask(t, s, "inproc:refund", "refund-17", `{"order":17,"payment":7,"amount":"120.00","note":"customer says \u202e damaged"}`)
	other := ask(t, s, "inproc:refund", "refund-18", `{"order":18,"payment":8,"amount":"20.00"}`)
	review := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	hold := ask(t, s, "inproc:deploy", "deploy-1", `{"service":"shop","version":"2"}`)
	choice := ask(t, s, "inproc:restore-backup", "restore-1", `{"service":"shop"}`)
	form := ask(t, s, "inproc:register-supplier", "supplier-1", `{"name":"Blum"}`)
	want(t, b.Follow(b.Post("/requests/"+other+"/reject", hidden(b.Get("/requests/"+other+"/reject"), "code", "wrong_amount", "text", "too much")...)), http.StatusOK)
	talk, several, handed := begin(t, b, "write to Anna about lunch"), begin(t, b, "write to Anna"), begin(t, b, "write to Anna about tea")
	for range 6 {
		b.Post(handed, "text", "blue")
	}
	paths := []string{
		"/chat", talk, several, handed, regexp.MustCompile(`/requests/int_\w+`).FindString(b.Get(handed).Body),
		"/inbox", "/inbox?tab=done", "/inbox?tab=snoozed", "/inbox?id=" + approval, "/inbox?q=tool:refund", "/inbox?q=nothing", "/inbox/views", "/batch?like=" + approval,
		"/requests/" + approval, "/requests/" + other, "/requests/" + review, "/requests/" + hold, "/requests/" + choice, "/requests/" + form, "/requests/unknown",
		"/runs", "/runs?status=failed", "/runs/article-tea", "/runs/refund-18", "/graphs", "/graphs/inproc:content-review", "/policies", "/routes", "/grants", "/audit", "/audit?findings=1", "/audit?verify=1&kind=run.started", "/audit/requests/" + other, "/audit/decisions",
		"/analytics", "/me", "/admin", "/deliveries", "/link/unknown", "/docs", "/nowhere", "/requests/" + review + "/respond", "/requests/" + hold + "/approve", "/requests/" + form + "/respond", "/requests/" + other + "/approve",
	}
	for _, act := range []string{"approve", "reject", "edit", "ask", "comment", "claim", "delegate", "snooze", "extend", "escalate", "return", "remember", "cancel"} {
		paths = append(paths, "/requests/"+approval+"/"+act)
	}
	for viewer := range letters {
		b.Language = viewer
		for _, path := range paths {
			api.take()
			got := b.Get(path)
			body := quoted.ReplaceAllString(got.Body, "")
			for language, letter := range letters {
				if n := strings.Count(body, letter); language == viewer && n < 100 || language != viewer && n > len("Deutsch") {
					t.Errorf("%s in %s: status %d, %d letters of %s", path, viewer, got.Status, n, language)
				}
			}
			for _, text := range untranslated(got.Body, api.take()+strings.ToLower(latin(path))) {
				t.Errorf("%s in %s: %s", path, viewer, text)
			}
		}
	}
}

// quoted is what another person saw, in their language.
var quoted = regexp.MustCompile(`(?s)<pre class="mono" translate="no">.*?</pre>`)

// latin returns the words of a text.
func latin(text string) string { return strings.Join(latinWords.FindAllString(text, -1), " ") + " " }
