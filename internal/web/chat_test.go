package web_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/tool"
)

// openChat starts a server with the assistant of the example.
func openChat(t *testing.T) *webtest.Server {
	t.Helper()
	return open(t, func(c *webtest.Config) {
		withAssistant(t, c)
		c.Site = func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) }
	})
}

func withAssistant(t *testing.T, c *webtest.Config) {
	t.Helper()
	assistant, err := office.New(t.TempDir(), office.Script())
	if err != nil {
		t.Fatal(err)
	}
	c.Graphs, c.Assistant = append(c.Graphs, inproc.Agent(agent.RunnerConfig{Agent: assistant})), "inproc:assistant"
}

var conversationPath = regexp.MustCompile(`/chat/[\w.-]+`)

// begin starts a conversation with a message and returns its path.
func begin(t *testing.T, b *webtest.Browser, text string) (path string) {
	t.Helper()
	got := b.Post("/chat", "text", text)
	path = conversationPath.FindString(got.Header.Get("Location"))
	if got.Status != http.StatusSeeOther || path == "" {
		t.Fatalf("%d %v %s", got.Status, got.Header, got.Body)
	}
	return path
}

func TestChat_QuestionsAreCardsAndWorkWithoutScripts(t *testing.T) {
	s := openChat(t)
	b := s.SignIn("ada", authn.RoleUser)
	want(t, b.Follow(b.Get("/")), http.StatusOK, "You have no conversations yet", `action="/chat"`)
	path := begin(t, b, "write to Anna about lunch")
	page := b.Get(path)
	want(t, page, http.StatusOK, `value="q1:anna-m"`, "Anna Schmidt (sales)", `value="q1:escape"`, "Someone else")
	want(t, b.Follow(submit(b, path, page, "choice", "q1:anna-s", "idempotency_key", "k1")), http.StatusOK, "on its way to Anna Schmidt", `class="bubble user"`)
	// the same form again has no effect
	again := b.Follow(submit(b, path, page, "choice", "q1:anna-s", "idempotency_key", "k1"))
	if strings.Count(again.Body, "on its way") != 1 {
		t.Error(again.Body)
	}
	want(t, b.Get("/chat"), http.StatusOK, "write to Anna about lunch")
	want(t, s.SignIn("ann").Get("/analytics"), http.StatusOK, "Questions to users", "1 run has ended, 1 with a question", "disambiguation.")
	bob := s.SignIn("bob", authn.RoleUser)
	want(t, bob.Get(path), http.StatusNotFound, `href="/"`)
	eve := s.SignIn("eve", authn.RoleAuditor)
	want(t, eve.Get("/chat"), http.StatusOK, `href="`+path+`"`, "ada · ", "Choose a conversation")
	want(t, eve.Get(path), http.StatusOK, "conversation of ada")
}

func TestChat_SeveralQuestionsAreOneForm(t *testing.T) {
	b := openChat(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "write to Anna")
	both := b.Get(path)
	want(t, both, http.StatusOK, `name="s/q1" value="anna-m"`, `name="v/q2"`, `name="answers"`)
	// one of two answers: the other question stays open
	one := b.Follow(submit(b, path, both, "answers", "1", "v/q2", "lunch on Friday"))
	want(t, one, http.StatusOK, `value="q1:anna-m"`)
	want(t, b.Follow(submit(b, path, one, "choice", "q1:anna-m")), http.StatusOK, "“lunch on Friday” is on its way to Anna Meier")

	path = begin(t, b, "write to Anna")
	want(t, b.Follow(submit(b, path, b.Get(path), "answers", "escape")), http.StatusOK, "Nothing was sent.")

	path = begin(t, b, "meet Tom")
	page := b.Get(path)
	want(t, page, http.StatusOK, `name="v/q1/day"`)
	want(t, submit(b, path, page, "answers", "1"), http.StatusUnprocessableEntity, "the message is empty")
	page = b.Follow(submit(b, path, page, "answers", "1", "v/q1/day", "tomorrow"))
	want(t, page, http.StatusOK, `name="v/q1/day"`)
	want(t, b.Follow(submit(b, path, page, "answers", "1", "v/q1/day", "2027-05-31")), http.StatusOK, "Tom Becker, 2027-05-31")
}

// A question that the user does not answer clearly is a request in the inbox, and the answer comes
// back to the conversation.
func TestChat_HandOverReachesTheInboxAndComesBack(t *testing.T) {
	s := openChat(t)
	b, ann := s.SignIn("ada", authn.RoleUser, authn.RoleApprover), s.SignIn("ann", authn.RoleApprover)
	path := begin(t, b, "write to Anna about lunch")
	for range 3 {
		b.Post(path, "text", "blue")
	}
	got := b.Get(path)
	want(t, got, http.StatusOK, "A person answers this question for you", "/requests/int_")
	request := regexp.MustCompile(`/requests/int_\w+`).FindString(got.Body)
	want(t, ann.Get(request), http.StatusOK, "needs a person to answer for its user", "user: blue", "Which Anna do you mean?")
	ann.Follow(ann.Post(request+"/respond", hidden(ann.Get(request+"/respond"), "v/option", "anna-s")...))
	if _, err := s.Dialog.Get(t.Context(), webtest.Account, strings.TrimPrefix(path, "/chat/")); err != nil { // as the server does every few seconds
		t.Fatal(err)
	}
	want(t, b.Get(path), http.StatusOK, "on its way to Anna Schmidt")
}

// Texts of agents, models and users are text, never markup.
func TestChat_ForgedTextIsHarmless(t *testing.T) {
	b := openChat(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, `write to Anna about <img src=x onerror=alert(1)>"' `+"\u202e")
	page := b.Get(path)
	submit(b, path, page, "choice", "q1:anna-m")
	got := b.Get(path)
	want(t, got, http.StatusOK, "is on its way to Anna Meier")
	for _, bad := range []string{"<img", "\u202e"} {
		if strings.Contains(got.Body, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	want(t, submit(b, path, page, "choice", "q1:<b>", "idempotency_key", "k"), http.StatusUnprocessableEntity, "The questions have changed")
	want(t, b.Post(path, "choice", "q9:anna-m"), http.StatusUnprocessableEntity)
	path = begin(t, b, "write to Anna about lunch")
	want(t, submit(b, path, b.Get(path), "choice", "q1:<b>"), http.StatusUnprocessableEntity, "q1 has no such option")
}

// A question that the user may ignore is set apart, and follows the result.
func TestChat_AsideFollowsTheResultAndIsSetApart(t *testing.T) {
	type errand struct {
		Query string `json:"query"`
		Done  string `json:"done,omitempty"`
	}
	g := graph.New[errand]("aside")
	g.Node("ask", func(ctx context.Context, s errand) (errand, error) {
		answer, err := dialog.Ask(ctx, dialog.Question{
			Kind: dialog.Disambiguation, Relevance: dialog.NonBlocking, Text: "Which Anna did you mean?", Say: "The mail is sent.", Default: "anna-m",
			Options: []dialog.Option{{ID: "anna-m", Label: "Anna Meier"}, {ID: "anna-s", Label: "Anna Schmidt"}},
		})
		s.Done = "Noted: " + answer.Option
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, inproc.Flow(flow, inproc.FlowConfig[errand]{Content: func(s errand) string { return s.Done }}))
		c.Assistant = "inproc:aside"
		c.Site = func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) }
	}).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "hello")
	page := b.Get(path)
	want(t, page, http.StatusOK, "The mail is sent.", `class="card panel ask aside"`, "By the way", "You do not have to answer this.", `value="q1:anna-s"`)
	want(t, b.Follow(submit(b, path, page, "choice", "q1:anna-s")), http.StatusOK, "Noted: anna-s")
}

func TestChat_WithoutAnAssistantThereIsNoPage(t *testing.T) {
	b := open(t).SignIn("ann")
	if got := b.Get("/chat"); got.Status != http.StatusNotFound {
		t.Errorf("%d", got.Status)
	}
	if got := b.Get("/inbox"); strings.Contains(got.Body, `href="/chat"`) {
		t.Error("the navigation has a link")
	}
}

// With several assistants a conversation begins with a choice. While a run waits for an approver,
// the page says so.
func TestChat_ConversationBeginsWithAChosenAssistant(t *testing.T) {
	refund := tool.Approve(tool.New("refund", "Refunds an order.", func(context.Context, struct{}) (string, error) { return "done", nil }))
	clerk, err := agent.NewChat(agent.Chat{Name: "clerk", Model: script.New(script.Call("refund", "{}"), script.Say("It is refunded.")), Tools: []*tool.Tool{refund}})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, func(c *webtest.Config) {
		withAssistant(t, c)
		c.Graphs = append(c.Graphs, inproc.Agent(agent.RunnerConfig{Agent: clerk}))
		c.Assistants = []dialog.Assistant{{ID: "clerk", Title: "Shop <desk>", Description: "Refunds orders.", Graph: "inproc:clerk"}}
		c.Site = func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) }
	})
	b := s.SignIn("ada", authn.RoleUser)
	want(t, b.Get("/chat"), http.StatusOK, `name="assistant" value="" checked`, `name="assistant" value="clerk"`, "Shop &lt;desk&gt;", "Refunds orders.")
	want(t, b.Post("/chat", "text", "hello", "assistant", "nobody"), http.StatusUnprocessableEntity, "there is no such assistant", ">hello</textarea>")
	got := b.Post("/chat", "text", "refund my order", "assistant", "clerk")
	path := conversationPath.FindString(got.Header.Get("Location"))
	page := b.Get(path)
	want(t, page, http.StatusOK, "Another person has to decide first.", "Shop &lt;desk&gt; ·")
	if strings.Contains(page.Body, `name="assistant"`) {
		t.Error("the assistant of a conversation can be changed")
	}
	list, err := s.Dialog.List(t.Context(), webtest.Account, "ada")
	if err != nil || len(list) != 1 || list[0].Assistant != "clerk" {
		t.Errorf("%+v, %v", list, err)
	}
	// Without a choice it is the first one.
	want(t, b.Get(begin(t, b, "write to Anna about lunch")), http.StatusOK, "Anna Schmidt (sales)")
}
