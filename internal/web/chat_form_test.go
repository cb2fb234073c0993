package web_test

import (
	"context"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

var (
	shownField = regexp.MustCompile(`name="shown" value="([^"]*)"`)
	openKey    = regexp.MustCompile(`data-key="([^"]*)"`)
)

// submit sends a form of a page that was shown, which may have changed in the meantime.
func submit(b *webtest.Browser, path string, page webtest.Response, fields ...string) webtest.Response {
	b.Helper()
	for _, shown := range shownField.FindAllStringSubmatch(page.Body, -1) {
		fields = append(fields, "shown", shown[1])
	}
	return b.Post(path, fields...)
}

// openTrip starts a server with an assistant that asks for the two fields of a trip.
func openTrip(t *testing.T) *webtest.Server {
	t.Helper()
	type trip struct {
		Query string `json:"query"`
		Done  string `json:"done,omitempty"`
	}
	g := graph.New[trip]("trip")
	g.Node("ask", func(ctx context.Context, s trip) (trip, error) {
		answer, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Form, Text: "Where do you go?", Fields: []dialog.Field{
			{Name: "from", Label: "From", Type: dialog.TextField},
			{Name: "class", Label: "Class", Type: dialog.ChoiceField, Choices: []string{"first", "second"}},
		}})
		s.Done = "Booked from " + answer.Fields["from"] + " in " + answer.Fields["class"] + " class"
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, inproc.Flow(flow, inproc.FlowConfig[trip]{Content: func(s trip) string { return s.Done }}))
		c.Assistant = "inproc:trip"
		c.Site = func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) }
	})
}

// The page replaces a form that was filled in partly, although its text is the same: the old one
// has an idempotency key that was used.
func TestChat_PartlyFilledFormIsANewForm(t *testing.T) {
	b := openTrip(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "a trip")
	first := b.Get(path)
	want(t, first, http.StatusOK, `name="s/q1/class" value="second"`)
	half := b.Follow(submit(b, path, first, "answers", "1", "v/q1/from", "Rome", "idempotency_key", "k1"))
	want(t, half, http.StatusOK, `value="Rome"`)
	if was, is := openKey.FindString(first.Body), openKey.FindString(half.Body); was == is {
		t.Errorf("the key of the open questions is still %s", is)
	}
	want(t, b.Follow(submit(b, path, half, "answers", "1", "s/q1/class", "second", "idempotency_key", "k2")), http.StatusOK, "Booked from Rome in second class")
}

// A form of another window is not read as the answer to what the question has become; its input
// stays.
func TestChat_FormOfAnEarlierQuestionIsNotSent(t *testing.T) {
	b := openTrip(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "a trip")
	old := b.Get(path)
	b.Follow(submit(b, path, old, "answers", "1", "s/q1/class", "first"))
	got := submit(b, path, old, "answers", "1", "v/q1/from", "Rome", "s/q1/class", "second")
	want(t, got, http.StatusUnprocessableEntity, "The questions have changed", `value="Rome"`, `value="first" checked`)
	want(t, b.Follow(submit(b, path, got, "answers", "1", "v/q1/from", "Rome", "s/q1/class", "first")), http.StatusOK, "Booked from Rome in first class")
	// what was typed for a question that is closed goes to the message field
	want(t, submit(b, path, old, "answers", "1", "v/q1/from", "Oslo"), http.StatusUnprocessableEntity, "The questions have changed", ">Oslo</textarea>")
}

// A question that has become a read-back does not take an earlier button for a yes.
func TestChat_ButtonOfAnEarlierQuestionIsNotAYes(t *testing.T) {
	s := openChat(t)
	b := s.SignIn("ada", authn.RoleUser)
	at := begin(t, b, "write to Anna about lunch")
	old := b.Get(at)
	_, err := s.Dialog.Message(t.Context(), webtest.Account, path.Base(at), dialog.Message{Text: "Schmidt", Modality: dialog.Voice, Recognition: 0.3, Actor: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	now := b.Get(at)
	want(t, now, http.StatusOK, `value="q1:yes"`)
	for _, button := range []string{"q1:anna-m", "q1:yes", "q1:escape"} {
		want(t, submit(b, at, old, "choice", button), http.StatusUnprocessableEntity, "The questions have changed", `value="q1:yes"`)
	}
	want(t, b.Post(at, "answers", "1", "s/q1", "yes"), http.StatusUnprocessableEntity, "The questions have changed")
	want(t, b.Follow(submit(b, at, now, "choice", "q1:yes")), http.StatusOK, "on its way to Anna Schmidt")
}

// A browser that lost the answer of the server sends the form again, when its questions are closed.
func TestChat_RepeatedFormIsAccepted(t *testing.T) {
	b := openChat(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "write to Anna")
	page := b.Get(path)
	for range 2 {
		got := b.Follow(submit(b, path, page, "answers", "1", "s/q1", "anna-m", "v/q2", "lunch", "idempotency_key", "k1"))
		want(t, got, http.StatusOK, "“lunch” is on its way to Anna Meier")
		if n := strings.Count(got.Body, "on its way"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	}
	path = begin(t, b, "write to Anna")
	page = b.Get(path)
	for range 2 {
		want(t, b.Follow(submit(b, path, page, "answers", "escape", "idempotency_key", "k2")), http.StatusOK, "Nothing was sent.")
	}
}
