package web_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var (
	thenTexts = regexp.MustCompile(`(?s)<div class="then">(.*?)</div>`)
	markup    = regexp.MustCompile(`<[^>]*>`)
)

// consequence returns what the page of a request says that a decision causes.
func consequence(page webtest.Response) string {
	match := thenTexts.FindStringSubmatch(page.Body)
	if match == nil {
		return ""
	}
	return html.UnescapeString(strings.Join(strings.Fields(markup.ReplaceAllString(match[1], " ")), " "))
}

// The page says before a decision what happens when the decision is sent.
func TestConsequence_TextsAgreeWithTheResult(t *testing.T) {
	const ask = "deadline: 24h, verbs: [approve, reject], "
	for name, c := range map[string]struct {
		rules  string
		before []string // who voted before
		caller string
		act    string
		text   string // of the decision bar
		form   string // what the form of the action says
		status int
		after  string // what the page says after it was sent
	}{
		"the only vote":         {rules: `groups: [{from: ["group:support"]}]`, caller: "ann", act: "approve", text: "Your vote decides: exactly this runs now.", form: "Your vote decides: exactly this runs now.", status: 303, after: "Approved by ann"},
		"the only rejection":    {rules: `groups: [{from: ["group:support"]}]`, caller: "ann", act: "reject", text: "Your vote decides", form: "The action does not run.", status: 303, after: "Rejected by ann"},
		"the first of two":      {rules: `groups: [{from: ["group:support"], count: 2}]`, caller: "ann", act: "approve", text: "Your vote is 1 of 2 that are needed. Then still needed: 1 × support.", form: "Your vote is 1 of 2", status: 303, after: "You have voted."},
		"the second of two":     {rules: `groups: [{from: ["group:support"], count: 2}]`, before: []string{"bob"}, caller: "ann", act: "approve", text: "Your vote decides", form: "Your vote decides", status: 303, after: "Approved by"},
		"two groups":            {rules: `groups: [{from: ["group:support"]}, {from: ["group:finance"]}]`, caller: "ann", act: "approve", text: "Then still needed: 1 × finance.", form: "1 × finance", status: 303, after: "You have voted."},
		"one of two against":    {rules: `groups: [{from: ["group:support"]}], deny_count: 2`, caller: "ann", act: "reject", text: "Your vote decides", form: "Your vote against is 1 of 2 that are needed.", status: 303, after: "You have voted."},
		"an undo window":        {rules: `groups: [{from: ["group:support"]}], undo: 10m`, caller: "ann", act: "approve", text: "Your vote decides. You can undo it for 10 min.", form: "You can undo it for 10 min.", status: 303, after: "It takes effect"},
		"a weak sign-in":        {rules: `groups: [{from: ["group:support"]}], min_auth: sso_mfa`, caller: "ann", act: "approve", text: "It needs sso_mfa.", form: "It needs sso_mfa.", status: 403, after: "Sign in again to decide"},
		"another group":         {rules: `groups: [{from: ["group:support"]}]`, caller: "cat", act: "approve", form: "You are not in a group that decides this.", status: 403, after: "You are not in a group that decides this."},
		"a later stage":         {rules: `groups: [{from: ["group:support"]}, {from: ["group:finance"], stage: 1}]`, caller: "cat", act: "approve", form: "An earlier stage has to agree first.", status: 409, after: "An earlier stage has to agree first."},
		"the next stage":        {rules: `groups: [{from: ["group:support"]}, {from: ["group:finance"], stage: 1}]`, before: []string{"ann"}, caller: "cat", act: "approve", text: "Your vote decides", form: "Your vote decides", status: 303, after: "Approved by"},
		"a decision is pending": {rules: `groups: [{from: ["group:support"]}], undo: 10m`, before: []string{"bob"}, caller: "ann", act: "approve", form: "A decision was made and is still pending.", status: 409, after: "Approved by bob. It takes effect"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {"+ask+c.rules+"}}\nrules: []\n"), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, func(config *webtest.Config) {
				config.Graphs = append(config.Graphs, refundGraph(t, func(refund) {}))
				config.Desk = executor.DeskConfig{Policy: set, Directory: desk.StaticDirectory{"group:support": {"ann", "bob"}, "group:finance": {"cat"}}}
			})
			id := askRefund(t, s)
			for _, person := range c.before {
				b := s.SignIn(person)
				b.Post("/requests/"+id+"/approve", hidden(b.Get("/requests/"+id+"/approve"))...)
			}
			b := s.SignIn(c.caller)
			if got := consequence(b.Get("/requests/" + id)); !strings.Contains(got, c.text) || c.text == "" && got != "" {
				t.Errorf("the page says %q, not %q", got, c.text)
			}
			form := b.Get("/requests/" + id + "/" + c.act)
			want(t, form, http.StatusOK, c.form)
			sent := b.Post("/requests/"+id+"/"+c.act, hidden(form, "text", "because")...)
			if sent.Status != c.status {
				t.Errorf("sending it: %d, not %d", sent.Status, c.status)
			}
			after := b.Get("/requests/" + id)
			want(t, after, http.StatusOK, c.after)
			voted := strings.Contains(after.Body, "You have voted.")
			if voted != (c.after == "You have voted.") {
				t.Errorf("voted: %t", voted)
			}
			if voted && strings.Contains(after.Body, `href="/requests/`+id+`/approve"`) {
				t.Error("the person is asked again")
			}
			if got := b.Get("/inbox").Body; voted && strings.Contains(got, `data-id="`+id+`"`) {
				t.Error("the request still waits for the person")
			}
		})
	}
}

func askRefund(t *testing.T, s *webtest.Server) string {
	t.Helper()
	return ask(t, s, "inproc:refund", "r1", refundInput)
}

// The form of a request that is over promises nothing.
func TestConsequence_NoneAfterTheDecision(t *testing.T) {
	s := openDesk(t)
	id := askRefund(t, s)
	bob, ann := s.SignIn("bob"), s.SignIn("ann")
	late := hidden(ann.Get("/requests/" + id + "/approve"))
	bob.Post("/requests/"+id+"/approve", hidden(bob.Get("/requests/"+id+"/approve"))...)
	for name, page := range map[string]webtest.Response{"opened later": ann.Get("/requests/" + id + "/approve"), "sent too late": ann.Post("/requests/"+id+"/approve", late...)} {
		if strings.Contains(page.Body, "then-line") || strings.Contains(page.Body, "runs now") {
			t.Errorf("the form that is %s says what it causes: %s", name, page.Body)
		}
	}
}
