package browsertest

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

// writer is a model that writes the words of a channel, until it is closed.
type writer struct{ next chan string }

func (w writer) Generate(context.Context, *agent.Request) (*agent.Response, error) {
	return nil, errors.New("the run does not stream")
}

func (w writer) Stream(ctx context.Context, _ *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		text := ""
		for {
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case word, more := <-w.next:
				if !more {
					yield(&agent.Chunk{Response: &agent.Response{Message: agent.Assistant(text), Model: "writer", FinishReason: agent.FinishStop}}, nil)
					return
				}
				text += word
				if !yield(&agent.Chunk{Text: word}, nil) {
					return
				}
			}
		}
	}
}

// The page shows each word when the model has written it. The line with the whole text replaces
// them.
func TestChat_TextOfTheAgentStreams(t *testing.T) {
	testtier.Needs(t, "Chromium")
	if browser == nil {
		t.Fatal("Chromium is missing: run make need-chromium")
	}
	model := writer{make(chan string)}
	assistant, err := agent.NewChat(agent.Chat{Name: "assistant", Model: model})
	if err != nil {
		t.Fatal(err)
	}
	s := webtest.Open(t, webtest.Config{
		Graphs:    []inproc.Graph{inproc.Agent(agent.RunnerConfig{Agent: assistant, EnableStreaming: true})},
		Assistant: "inproc:assistant",
		Site:      func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) },
	})
	finish := sync.OnceFunc(func() { close(model.next) })
	t.Cleanup(finish) // before the server stops
	b := openTab(t, s, "ada", desk)
	b.open("/chat")
	b.say("hello")
	b.waitText("The assistant is working")
	if title := eval[string](b, `document.querySelector(".chats [aria-current] .title").innerText`); title != "hello" {
		t.Errorf("the conversation is called %q", title)
	}
	model.next <- "Good <b>morning</b>, "
	b.waitText("Good <b>morning</b>,")
	model.next <- "Ada."
	b.waitText("Good <b>morning</b>, Ada.")
	if n := eval[int](b, `document.querySelectorAll(".bubble.agent").length * 10 + document.querySelectorAll(".bubble.draft").length`); n != 11 {
		t.Errorf("%d lines of the agent and %d drafts", n/10, n%10)
	}
	finish()
	eval[bool](b, `new Promise((done) => {
		const look = () => document.querySelectorAll(".bubble.agent:not(.draft)").length === 1 && !document.querySelector(".draft") ? done(true) : setTimeout(look, 20);
		look();
	})`)
	b.waitText("Good <b>morning</b>, Ada.")
}

// A corrected answer replaces itself on the page. Another window shows it too, and the mail that
// has gone.
func TestChat_AnAnswerIsCorrectedWithAButton(t *testing.T) {
	s := openChatServer(t)
	b := openTab(t, s, "ada", desk)
	b.open("/chat")
	b.say("write to Anna about lunch")
	b.do(chromedp.WaitVisible(`button[value="q1:anna-m"]`), chromedp.Click(`button[value="q1:anna-m"]`))
	b.waitText("is on its way to Anna Meier")
	second := openTab(t, s, "ada", phone)
	second.open(eval[string](b, `location.pathname`))
	b.do(chromedp.Click(`.correct summary`), chromedp.WaitVisible(`.correct button[value="q1:anna-s"]`))
	b.check("correct")
	b.do(chromedp.Click(`.correct button[value="q1:anna-s"]`))
	for _, tab := range []*tab{b, second} {
		tab.waitText("the task has already ended with Anna Meier (legal)")
		tab.do(chromedp.WaitReady(`.correct button[value="q1:anna-m"]`))
	}
	b.do(chromedp.WaitVisible(`button[value="q2:yes"]`), chromedp.Click(`button[value="q2:yes"]`))
	b.waitText("is on its way to Anna Schmidt")
}
