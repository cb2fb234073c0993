package browsertest

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

// openChatServer starts a server with the assistant of the example.
func openChatServer(t *testing.T) *webtest.Server {
	t.Helper()
	testtier.Needs(t, "Chromium")
	if browser == nil {
		t.Fatal("Chromium is missing: run make need-chromium")
	}
	assistant, err := office.New(t.TempDir(), office.Script())
	if err != nil {
		t.Fatal(err)
	}
	return webtest.Open(t, webtest.Config{Graphs: []inproc.Graph{inproc.Agent(agent.RunnerConfig{Agent: assistant})}, Assistant: "inproc:assistant", Site: func(api http.Handler) (http.Handler, error) {
		return web.New(web.Config{API: api, Chat: true, Tour: true})
	}})
}

const messageBox = ".composer textarea"

// say writes a message and sends it with the Enter key.
func (b *tab) say(text string) {
	b.Helper()
	b.do(chromedp.SendKeys(messageBox, text+kb.Enter))
}

// A conversation by keyboard, without a reload of the page; also when the server restarts in the
// middle, and with a second window of the same person.
func TestChat_ByKeyboardAcrossARestart(t *testing.T) {
	s := openChatServer(t)
	b := openTab(t, s, "ada", desk)
	b.open("/chat")
	b.say("write to Anna")
	b.waitText("What is the mail about?")
	b.do(scheme("light"))
	b.check("form-light")
	b.do(scheme("dark"))
	b.check("form-dark")
	eval[bool](b, `window.kept = true`)
	second := openTab(t, s, "ada", phone)
	second.open(eval[string](b, `location.pathname`))
	second.waitText("What is the mail about?")
	second.check("phone")
	b.say("legal")
	b.waitText("You\n") // the line of the user
	s.Restart(func() {})
	b.say("lunch on Friday")
	b.waitText("is on its way to Anna Meier")
	second.waitText("is on its way to Anna Meier")
	if !eval[bool](b, `window.kept === true`) {
		t.Error("the page was loaded again")
	}
	if got := eval[string](b, `document.querySelector(".composer textarea").value.trim()`); got != "" {
		t.Errorf("the message is still in the field: %q", got)
	}
	second.check("phone-end")
}

func TestChat_WorksWithoutScripts(t *testing.T) {
	s := openChatServer(t)
	b := openTab(t, s, "ada", phone, noScript)
	b.open("/chat")
	b.do(chromedp.Click(`.examples button`), chromedp.WaitVisible(`button[value="q1:anna-s"]`), chromedp.Click(`button[value="q1:anna-s"]`))
	b.waitText("is on its way to Anna Schmidt")
}

// A form that is sent in two halves: the page replaces it after the first one, and what is typed in
// another window stays.
func TestChat_FormInTwoHalves(t *testing.T) {
	testtier.Needs(t, "Chromium")
	if browser == nil {
		t.Fatal("Chromium is missing: run make need-chromium")
	}
	g := graph.New[trip]("trip")
	g.Node("ask", func(ctx context.Context, s trip) (trip, error) {
		answer, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Form, Text: "Where do you go?", Fields: []dialog.Field{
			{Name: "from", Label: "From", Type: dialog.TextField}, {Name: "to", Label: "To", Type: dialog.TextField},
		}})
		s.Done = "Booked from " + answer.Fields["from"] + " to " + answer.Fields["to"]
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s := webtest.Open(t, webtest.Config{
		Graphs:    []inproc.Graph{inproc.Flow(flow, inproc.FlowConfig[trip]{Content: func(s trip) string { return s.Done }})},
		Assistant: "inproc:trip",
		Site:      func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: api, Chat: true}) },
	})
	b := openTab(t, s, "ada", desk)
	b.open("/chat")
	b.say("a trip")
	b.waitText("Where do you go?")
	second := openTab(t, s, "ada", phone)
	second.open(eval[string](b, `location.pathname`))
	second.waitText("Where do you go?")
	second.do(chromedp.SendKeys(`[name="v/q1/to"]`, "Oslo"))
	const send = `button[name="answers"][value="1"]`
	b.do(chromedp.SendKeys(`[name="v/q1/from"]`, "Rome"), chromedp.Click(send))
	second.do(chromedp.WaitVisible(`[name="v/q1/from"][value="Rome"]`))
	if got := eval[string](second, `document.querySelector('[name="v/q1/to"]').value`); got != "Oslo" {
		t.Errorf("the text in the second window is %q now", got)
	}
	b.do(chromedp.WaitVisible(`[name="v/q1/from"][value="Rome"]`), chromedp.SendKeys(`[name="v/q1/to"]`, "Paris"), chromedp.Click(send))
	b.waitText("Booked from Rome to Paris")
}

type trip struct {
	Query string `json:"query"`
	Done  string `json:"done,omitempty"`
}

// Text of a user, which the agent repeats, is never markup.
func TestChat_ForgedTextIsHarmless(t *testing.T) {
	s := openChatServer(t)
	b := openTab(t, s, "ada", desk)
	b.open("/chat")
	b.say(`write to Anna about <img src=x onerror="window.forged=1"><script>window.forged=2</script>`)
	b.waitText("Which Anna do you mean?")
	b.do(chromedp.Click(`button[value="q1:anna-m"]`))
	b.waitText(`about “<img src=x`)
	if eval[bool](b, `"forged" in window || document.querySelector(".log img, .log script") !== null`) {
		t.Error("the text was executed")
	}
	b.check("forged")
}

// The same conversation in the browser, through HTTP and in the terminal program gives the same
// record.
func TestChat_SameRecordOnEverySurface(t *testing.T) {
	s := openChatServer(t)
	lines := []string{"write to Anna", "legal", "why?", "lunch on Friday", "write to Tom about the invoice"}
	const id = "same"
	ctx := t.Context()

	b := openTab(t, s, "ada", desk)
	create := func(name string) {
		t.Helper()
		if _, err := s.Dialog.Create(ctx, webtest.Account, id, conversation.Opening{User: name}); err != nil {
			t.Fatal(err)
		}
	}
	create("ada")
	b.open("/chat/" + id)
	for i, line := range lines {
		b.say(line)
		b.waitText([]string{"What is the mail about?", "legal", "It becomes the subject", "is on its way to Anna Meier", "Send a mail about"}[i])
		eval[bool](b, `new Promise((done) => { const el = document.querySelector("fermata-chat"); (el.sent ?? Promise.resolve()).then(() => done(true)); })`)
	}
	b.do(chromedp.WaitVisible(`button[value="q3:yes"]`), chromedp.Click(`button[value="q3:yes"]`))
	b.waitText("is on its way to Tom Becker")
	inBrowser, err := s.Dialog.Get(ctx, webtest.Account, id)
	if err != nil {
		t.Fatal(err)
	}

	other := openChatServer(t)
	person := other.SignIn("ada")
	say := func(body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, other.URL+"/api/v1/conversations/"+id+"/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		got := person.Do(r)
		if got.Status != http.StatusOK {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return got.Body
	}
	if _, err := other.Dialog.Create(ctx, webtest.Account, id, conversation.Opening{User: "ada"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		body, _ := json.Marshal(map[string]string{"text": line}) // strings
		say(string(body))
	}
	overHTTP := say(`{"question":"q3","choice":"yes"}`)

	program := filepath.Join(t.TempDir(), "assistant")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../../examples/assistant").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	terminal := exec.CommandContext(ctx, program, "-data", t.TempDir(), "-conversation", id)
	terminal.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n/press q3 yes\n/record\n")
	out, err := terminal.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, record, _ := strings.Cut(string(out), "{\n")
	record, _, _ = strings.Cut("{\n"+record, "\n}\n")
	inTerminal := record + "\n}"

	browserText, err := json.Marshal(inBrowser)
	if err != nil {
		t.Fatal(err)
	}
	want := comparable(t, string(browserText))
	if got := comparable(t, overHTTP); got != want {
		t.Errorf("over HTTP:\n%s\nin the browser:\n%s", got, want)
	}
	if got := comparable(t, inTerminal); got != want {
		t.Errorf("in the terminal:\n%s\nin the browser:\n%s", got, want)
	}
}

// comparable returns a record without times, names of people and channels, and generated ids.
func comparable(t *testing.T, record string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(record), &value); err != nil {
		t.Fatal(err, record)
	}
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if name == "at" || strings.HasSuffix(name, "_at") || name == "message" || name == "interrupt" || name == "user" || name == "actor" || name == "channel" {
					delete(v, name)
					continue
				}
				v[name] = clean(member)
			}
		case []any:
			for i := range v {
				v[i] = clean(v[i])
			}
		}
		return v
	}
	text, err := json.MarshalIndent(clean(value), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
