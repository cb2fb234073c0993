package email_test

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/email"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/requirement"
)

// people is a desk with one request, and an API that records decisions.
type people struct {
	channel.Desk
	linked  bool
	browser string // the person who is signed in
	request api.Request
	asked   []api.RequestAction
	decided []api.Decide
	viewed  []api.RequestAction
	problem *api.Problem
}

func (p *people) RequestURL(id string) string { return "https://fermata.example/requests/" + id }

func (p *people) SignedIn(*http.Request) (account, principal string, err error) {
	return "acme", p.browser, nil
}

func (p *people) LinkURL(context.Context, channel.Sender) (string, error) {
	return "https://fermata.example/link/1", nil
}

func (p *people) Client(_ context.Context, sender channel.Sender) (*client.Client, string, error) {
	if !p.linked || sender.Account != "acme" || sender.Channel != "email" || sender.ID != "ann@example.com" {
		return nil, "", channel.ErrNotLinked
	}
	return client.NewWithTransport(&url.URL{Scheme: "http", Host: "in-process"}, p), "ann", nil
}

func (p *people) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	switch {
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(p.request)
	case p.problem != nil:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.problem.Status)
		_ = json.NewEncoder(w).Encode(p.problem)
	case strings.HasSuffix(r.URL.Path, "/view"):
		var view api.RequestAction
		if err := json.NewDecoder(r.Body).Decode(&view); err != nil {
			return nil, err
		}
		p.viewed = append(p.viewed, view)
		_ = json.NewEncoder(w).Encode(p.request)
	case strings.HasSuffix(r.URL.Path, "/clarify"), strings.HasSuffix(r.URL.Path, "/escalate"):
		var asked api.RequestAction
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return nil, err
		}
		p.asked = append(p.asked, asked)
		_ = json.NewEncoder(w).Encode(p.request)
	default:
		var decide api.Decide
		if err := json.NewDecoder(r.Body).Decode(&decide); err != nil {
			return nil, err
		}
		p.decided = append(p.decided, decide)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"pending","run":"run_1"}`)
	}
	return w.Result(), nil
}

// visit opens the link of the newest message.
type visitor struct {
	t    *testing.T
	page http.Handler
	path string
}

var linkForm = regexp.MustCompile(`https://fermata\.example(/channels/email/\S+)`)

func newVisitor(t *testing.T, p *people) *visitor {
	t.Helper()
	s := newMailServer(t, false)
	c := newChannel(t, s, nil)
	if _, err := c.Send(t.Context(), refund()); err != nil {
		t.Fatal(err)
	}
	_, all := parts(t, s.messages[0])
	return &visitor{t: t, page: c.Handler(p), path: linkForm.FindStringSubmatch(all["text/plain"])[1]}
}

func (v *visitor) call(method, path, form string, header ...string) (int, string) {
	r := httptest.NewRequestWithContext(v.t.Context(), method, path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	v.page.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func open() *people { return asks("approval") }

// asks returns a desk with a request as package presentation words it.
func asks(name string) *people {
	text, err := os.ReadFile("../../internal/presentation/testdata/" + name + ".en.json")
	p := new(api.Presentation)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		panic(err)
	}
	for i, a := range p.Actions { // as the API writes them
		if a.Answer != nil {
			var compact bytes.Buffer
			if err := json.Compact(&compact, a.Answer); err != nil {
				panic(err)
			}
			p.Actions[i].Answer = compact.Bytes()
		}
	}
	return &people{linked: true, request: api.Request{ID: "int_1", Kind: "k", State: "pending", Shown: "shown-1", Presentation: p, Activity: &api.Activity{Risk: 1, Rules: []string{"large"}, Reason: "over 100", Progress: "1 of 2"}}}
}

func TestLink_ShowsAndDecidesOnlyByPost(t *testing.T) {
	p := open()
	v := newVisitor(t, p)
	for range 3 { // link scanners
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if code, body := v.call(method, v.path, ""); code != 200 || !strings.Contains(body, "120.00") {
				t.Fatalf("%d %s", code, body)
			}
		}
	}
	if len(p.decided) != 0 {
		t.Fatal("GET decides")
	}
	if code, body := v.call(http.MethodPost, v.path, "action=reject&v/reason="); code != 422 || !strings.Contains(body, "required") || len(p.decided) != 0 {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := v.call(http.MethodPost, v.path, "action=approve", "Sec-Fetch-Site", "same-origin"); code != 200 || !strings.Contains(body, "Recorded: Approve") {
		t.Fatalf("%d %s", code, body)
	}
	v.call(http.MethodPost, v.path, "action=approve")
	v.call(http.MethodPost, v.path, "action=reject&v/reason=no&form=b")
	if len(p.decided) != 3 || p.decided[0].ResumeID != p.decided[1].ResumeID || p.decided[1].ResumeID != p.decided[2].ResumeID || p.decided[0].Shown != "shown-1" || string(p.decided[0].Answer) == "" {
		t.Errorf("%+v", p.decided)
	}
	seen := p.viewed[0]
	if seen.Shown != "shown-1" || seen.Rendering.Channel != "email" || seen.Rendering.Hash != p.decided[0].Rendering {
		t.Errorf("what ann saw: %+v, and the decision names %q", seen.Rendering, p.decided[0].Rendering)
	}
	_, body := v.call(http.MethodGet, v.path, "")
	page := html.UnescapeString(body)
	for line := range strings.SplitSeq(seen.Rendering.Text, "\n") {
		if !strings.Contains(page, line) {
			t.Errorf("recorded, but not on the page: %q", line)
		}
	}
	for _, want := range []string{"120.00", "17: 1 cup", `{"status":"open"}`, "The customer is angry.", "large", "over 100", "1 of 2", "low", "•••"} {
		if !strings.Contains(seen.Rendering.Text, want) || !strings.Contains(page, want) {
			t.Errorf("%q is not on the page or not recorded:\n%s\n%s", want, seen.Rendering.Text, page)
		}
	}
}

// The page has every action of every kind of request, and sends the answer that the API defines.
func TestLink_EveryKind(t *testing.T) {
	for name, c := range map[string]struct{ form, answer string }{
		"approval":                     {"action=approve", `{"verb":"approve"}`},
		"approval, reason":             {"action=reject&v/reason=too+much", `{"verb":"reject","reason":"too much"}`},
		"approval-editable, code":      {"action=reject&v/codes/0=1", `{"verb":"reject","codes":["late"]}`},
		"approval-editable, no code":   {"action=reject&v/reason=no", ""},
		"approval-editable, edit":      {"action=edit&v/amount=90", ""},
		"approval-editable, text":      {"action=edit&v/amount=ninety", ""},
		"gate":                         {"action=approve", `{"verb":"approve"}`},
		"gate, reason":                 {"action=reject&v/reason=why%3F", `{"verb":"reject","reason":"why?"}`},
		"hold":                         {"action=approve", `{"verb":"approve"}`},
		"hold, state without a schema": {"action=edit&v/where/customer=43", ""},
		"hold, return":                 {"action=return&v/reason=a%0D%0Ab", `{"verb":"return","reason":"a\nb"}`},
		"choice":                       {`action=respond+{"choice":"none"}`, `{"choice":"none"}`},
		"choice, unknown":              {`action=respond+{"choice":"all"}`, ""},
		"yes-no":                       {"action=respond+true", "true"},
		"review":                       {`action=respond+{"action":"approve"}&v/feedback=`, `{"action":"approve"}`},
		"review, feedback":             {`action=respond+{"action":"reject"}&v/feedback=dull`, `{"action":"reject","feedback":"dull"}`},
		"form":                         {"action=respond&v/name=ACME&v/vat=7", `{"name":"ACME","vat":"7"}`},
		"form, incomplete":             {"action=respond&v/name=ACME", ""},
		"question":                     {"action=respond&v=orders", `"orders"`},
		"any-answer":                   {"action=respond&v=1", ""},
		"doubt":                        {`action=respond+{"happened":false}`, `{"happened":false}`},
	} {
		kind, _, _ := strings.Cut(name, ",")
		p := asks(kind)
		v := newVisitor(t, p)
		_, body := v.call(http.MethodGet, v.path, "")
		page := html.UnescapeString(body)
		for _, a := range p.request.Presentation.Actions {
			if !strings.Contains(page, a.Label) || !strings.Contains(page, a.Detail) {
				t.Errorf("%s: no %s on the page", name, a.Label)
			}
		}
		code, body := v.call(http.MethodPost, v.path, strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22", ":", "%3A").Replace(c.form))
		switch {
		case c.answer == "" && (code != http.StatusUnprocessableEntity || len(p.decided) != 0):
			t.Errorf("%s: %d, decided %+v\n%s", name, code, p.decided, body)
		case c.answer != "" && (code != http.StatusOK || len(p.decided) != 1 || string(p.decided[0].Answer) != c.answer):
			t.Errorf("%s: %d, decided %+v\n%s", name, code, p.decided, body)
		}
	}
}

// Questions to the agent and escalations do not use up the link.
func TestLink_AskAndEscalate(t *testing.T) {
	p := open()
	p.request.Presentation.Actions = append(p.request.Presentation.Actions, api.Action{Name: "escalate", Label: "Escalate"})
	v := newVisitor(t, p)
	for _, form := range []string{"action=ask&v/text=which+order%3F", "action=escalate"} {
		if code, body := v.call(http.MethodPost, v.path, form); code != http.StatusOK {
			t.Errorf("%s: %d %s", form, code, body)
		}
	}
	if len(p.asked) != 2 || p.asked[0].Text != "which order?" || len(p.decided) != 0 {
		t.Errorf("%+v, %+v", p.asked, p.decided)
	}
}

// A link proves only that its sender can read the mailbox.
func TestLink_HighRiskNeedsASignIn(t *testing.T) {
	for name, c := range map[string]struct {
		risk    int
		minAuth string
		decides bool
	}{
		"no rating": {0, "", true}, "low": {1, "", true}, "medium": {2, "", false}, "high": {3, "", false},
		"high, but the rules permit it": {3, "slack_linked", true}, "low, but the rules forbid it": {0, "token", false}, "unknown strength": {0, "x", false},
	} {
		p := open()
		v := newVisitor(t, p)
		p.request.Activity.Risk, p.request.Activity.MinAuth = c.risk, c.minAuth
		_, body := v.call(http.MethodGet, v.path, "")
		code, _ := v.call(http.MethodPost, v.path, "action=approve")
		if c.decides != (code == http.StatusOK) || c.decides != (len(p.decided) == 1) || c.decides == strings.Contains(body, "Sign in and decide") || c.decides != strings.Contains(body, "<form") {
			t.Errorf("%s: %d, decided %+v\n%s", name, code, p.decided, body)
		}
		s := newMailServer(t, false)
		m := refund()
		m.Card.Risk, m.Card.MinAuth = c.risk, requirement.Auth(c.minAuth)
		if _, err := newChannel(t, s, nil).Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		_, all := parts(t, s.messages[0])
		for kind, text := range all {
			if c.decides != strings.Contains(text, email.Path) || c.decides == strings.Contains(text, "Sign in and decide") {
				t.Errorf("%s: %s\n%s", name, kind, text)
			}
		}
	}
}

// A browser in which another person is signed in neither sees nor decides the request.
func TestLink_ForwardedToAnotherPerson(t *testing.T) {
	p := open()
	v := newVisitor(t, p)
	p.browser = "bob"
	for method, form := range map[string]string{http.MethodGet: "", http.MethodPost: "action=approve"} {
		code, body := v.call(method, v.path, form)
		if code != http.StatusForbidden || !strings.Contains(body, "You are signed in as bob") || strings.Contains(body, "120") || len(p.decided) != 0 {
			t.Errorf("%s: %d %s", method, code, body)
		}
	}
	p.browser = "ann"
	if _, body := v.call(http.MethodGet, v.path, ""); !strings.Contains(body, "counts as that of <strong>ann</strong>") {
		t.Errorf("whose vote: %s", body)
	}
	if code, body := v.call(http.MethodPost, v.path, "action=approve"); code != http.StatusOK || len(p.decided) != 1 {
		t.Errorf("%d %s", code, body)
	}
}

func TestLink_WhatDoesNotCountIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*people)
		want   string
	}{
		"not linked": {func(p *people) { p.linked = false }, "not linked"},
		"decided": {func(p *people) {
			p.request.State, p.request.Decision = "decided", &api.Decision{Verdict: "reject", By: "bob"}
		}, "reject by bob"},
		"changed":     {func(p *people) { p.request.Shown = "shown-2" }, "has changed"},
		"used before": {func(p *people) { p.problem = &api.Problem{Status: 422, Code: "resume_id_reused", Title: "x"} }, "A link decides once"},
		"not eligible": {func(p *people) {
			p.problem = &api.Problem{Status: 403, Code: "not_eligible", Title: "x", Detail: "ann is not in group finops"}
		}, "ann is not in group finops"},
	} {
		p := open()
		v := newVisitor(t, p)
		c.change(p)
		_, body := v.call(http.MethodPost, v.path, "action=approve")
		if name == "changed" || name == "decided" {
			p.problem = &api.Problem{Status: 409, Code: "changed", Title: "x", Detail: "the request has changed"}
			p.decided = nil
			_, body = v.call(http.MethodGet, v.path, "")
		}
		if len(p.decided) != 0 || !strings.Contains(body, c.want) || name == "not linked" && strings.Contains(body, "https://fermata.example/link/1") {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// An approval approves the edited arguments, so the page shows them.
func TestLink_ShowsEditedArguments(t *testing.T) {
	p := open()
	p.request.Presentation = &api.Presentation{Title: "Refund 100000", Facts: []api.Fact{{Label: "amount", Value: "100000"}}}
	v := newVisitor(t, p)
	if _, body := v.call(http.MethodGet, v.path, ""); !strings.Contains(body, "100000") || strings.Contains(body, "120.00") {
		t.Errorf("%s", body)
	}
}

func TestLink_Forged(t *testing.T) {
	p := open()
	v := newVisitor(t, p)
	token := strings.TrimPrefix(v.path, email.Path)
	text, sum, _ := strings.Cut(token, ".")
	for name, path := range map[string]string{
		"empty": email.Path, "no signature": email.Path + text, "other signature": email.Path + text + "." + sum[1:] + "A", "other content": email.Path + "A" + text + "." + sum, "none": email.Path + text + ".",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, body := v.call(method, path, "action=approve"); code != http.StatusForbidden || strings.Contains(body, "120.00") {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
	}
	if code, _ := v.call(http.MethodPost, v.path, "action=approve", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("a form of another site: %d", code)
	}
	if code, _ := v.call(http.MethodDelete, v.path, ""); code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", code)
	}
	s := newMailServer(t, false)
	late := newChannel(t, s, func(c *email.Config) { c.Now = func() time.Time { return noon.Add(25 * time.Hour) } })
	v.page = late.Handler(p)
	if code, body := v.call(http.MethodPost, v.path, "action=approve"); code != http.StatusForbidden || !strings.Contains(body, "expired") {
		t.Errorf("after a day: %d %s", code, body)
	}
	if len(p.decided) != 0 {
		t.Errorf("%+v", p.decided)
	}
}

// The one-time link goes to the mailbox and not to the browser, at most once a minute: the
// recipient of a forwarded message cannot link the address.
func TestLink_IsSentToTheAddressOnly(t *testing.T) {
	p := open()
	p.linked = false
	s := newMailServer(t, false)
	c := newChannel(t, s, nil)
	if _, err := c.Send(t.Context(), refund()); err != nil {
		t.Fatal(err)
	}
	_, all := parts(t, s.messages[0])
	v := &visitor{t: t, page: c.Handler(p), path: linkForm.FindStringSubmatch(all["text/plain"])[1]}
	if code, body := v.call(http.MethodGet, v.path, ""); code != 200 || strings.Contains(body, "/link/") || strings.Contains(body, "120") || !strings.Contains(body, "Send a link to ann@example.com") {
		t.Fatalf("%d %s", code, body)
	}
	refuse := func(err *smtp.SMTPError) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refuse = err
	}
	refuse(&smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"})
	for range 2 {
		if code, body := v.call(http.MethodPost, v.path, "action=link", "Sec-Fetch-Site", "same-origin"); code != 503 {
			t.Fatalf("a message that is not sent: %d %s", code, body)
		}
	}
	refuse(nil)
	for range 3 {
		if code, body := v.call(http.MethodPost, v.path, "action=link", "Sec-Fetch-Site", "same-origin"); code != 200 || strings.Contains(body, "/link/") {
			t.Fatalf("%d %s", code, body)
		}
	}
	if code, _ := v.call(http.MethodPost, v.path, "action=link", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Errorf("another site asks for the link: %d", code)
	}
	if len(s.messages) != 2 || !strings.Contains(s.messages[1], "https://fermata.example/link/1") {
		t.Errorf("messages %q", s.messages)
	}
}
