package email

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
)

//go:embed page.html
var pageSource string

var (
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"when": when, "plain": safehtml.Plain, "risk": riskName}).Parse(pageSource))
	pagePolicy   = "default-src 'none'; style-src 'sha256-" + styleHash(pageSource) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// styleHash returns the hash of the style element, for the content security policy.
func styleHash(html string) string {
	_, rest, _ := strings.Cut(html, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}

const (
	maxForm    = 16 << 10
	decideWait = 2 * time.Second
)

// page is what the template shows.
type page struct {
	Title   string
	Problem string
	// Request is shown if it is not nil, Choices are what the person can do with it.
	Request *api.Request
	Choices []choice
	// As is the person whose decision it will be, Address the one that the message was sent to.
	As, Address string
	// LinkTo, if set, is the address that can be linked.
	LinkTo string
	// Inbox is an address of the web inbox; SignIn says that it is the way to decide.
	Inbox  string
	SignIn bool
}

// The names of actions.
const (
	nameApprove  = "approve"
	nameEdit     = "edit"
	nameRespond  = "respond"
	nameEscalate = "escalate"
	nameAsk      = "ask"
)

// Handler serves the pages of links. GET shows the request, and only POST decides.
func (c *Channel) Handler(desk channel.Desk) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Robots-Tag", "noindex")
		h.Set("Content-Type", "text/html; charset=utf-8")
		l, err := c.verify(strings.TrimPrefix(r.URL.Path, Path))
		if err != nil {
			c.write(w, http.StatusForbidden, page{Title: "This link does not work", Problem: err.Error(), Inbox: strings.TrimSuffix(c.config.BaseURL, "/") + "/"})
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			c.show(w, r, desk, l)
		case http.MethodPost:
			c.decide(w, r, desk, l)
		default:
			h.Set("Allow", "GET, HEAD, POST")
			c.write(w, http.StatusMethodNotAllowed, page{Title: "This method is not allowed"})
		}
	})
}

// visit is a request as the owner of the address sees it.
type visit struct {
	person  *client.Client
	name    string // of the person
	request api.Request
}

// otherPersonError says that another person is signed in in the browser.
type otherPersonError struct{ name string }

func (e *otherPersonError) Error() string { return "email: the browser is signed in as " + e.name }

// open returns the request of a link as the owner of the address sees it. A browser in which
// another person is signed in does not get it: the message was forwarded.
func (c *Channel) open(r *http.Request, desk channel.Desk, l link) (v visit, err error) {
	if v.person, v.name, err = desk.Client(r.Context(), c.sender(l)); err != nil {
		return v, err
	}
	account, principal, err := desk.SignedIn(r)
	switch {
	case err != nil:
		return v, err
	case principal != "" && (account != l.Account || principal != v.name):
		return v, &otherPersonError{principal}
	}
	v.request, err = v.person.Request(r.Context(), l.Request)
	return v, err
}

// needsSignIn reports whether the person has to decide in the inbox.
func (v visit) needsSignIn() bool {
	a := v.request.Activity
	return a != nil && needsSignIn(a.Risk, requirement.Auth(a.MinAuth))
}

// decided reports whether the person has voted, or decided the request.
func (v visit) decided() bool {
	r := v.request
	return r.Activity != nil && r.Activity.Voted || r.Decision != nil && r.Decision.By == v.name
}

// choices returns what the person can do. sent is a form that was sent for the action key.
func (v visit) choices(key string, sent url.Values) (all []choice) {
	for _, a := range v.request.Presentation.Actions {
		one := newChoice(a, v.request.Activity, nil)
		if one.Key == key {
			one = newChoice(a, v.request.Activity, sent)
		}
		all = append(all, one)
	}
	return all
}

// problem says why nothing can be decided on the page; "" if something can.
func (v visit) problem(l link) string {
	r := v.request
	switch {
	case r.State != "pending" && r.Decision != nil:
		return "This request was decided: " + r.Decision.Verdict + " by " + safehtml.Plain(r.Decision.By) + "."
	case r.State != "pending":
		return "This request is closed."
	case r.Activity != nil && r.Activity.Voted && r.Activity.Pending != nil:
		return "Your vote is recorded. The decision takes effect at " + when(r.Activity.Pending.EffectiveAt) + "; until then you can withdraw your vote in the inbox."
	case r.Activity != nil && r.Activity.Voted:
		return "Your vote is recorded. You can change it in the inbox."
	case r.Shown != l.Digest:
		return "This request has changed since the message was sent. Open it in the inbox to see what changed."
	case r.Presentation == nil:
		return "This request can only be decided in the inbox."
	case r.Activity != nil && r.Activity.IneligibleReason != "":
		return refusal.Sentence(r.Activity.IneligibleReason, "")
	case v.needsSignIn() && r.Activity.MinAuth == "":
		return "The risk of this request is " + riskName(r.Activity.Risk) + ". A link from a message is not enough to decide it: sign in."
	case v.needsSignIn():
		return "The rules require a sign-in (" + r.Activity.MinAuth + ") for this decision. A link from a message is not enough."
	case len(r.Presentation.Actions) == 0:
		return "There is nothing to decide now."
	}
	return ""
}

// show writes the page with the current state of the request.
func (c *Channel) show(w http.ResponseWriter, r *http.Request, desk channel.Desk, l link) {
	v, err := c.open(r, desk, l)
	if err != nil {
		c.showError(w, desk, l, err)
		return
	}
	c.showRequest(w, desk, l, v, page{})
}

// showError writes why a request is not shown.
func (c *Channel) showError(w http.ResponseWriter, desk channel.Desk, l link, err error) {
	p := page{Title: "The request cannot be shown", Problem: explain(err), Inbox: desk.RequestURL(l.Request)}
	status := http.StatusConflict
	other, forwarded := errors.AsType[*otherPersonError](err)
	switch {
	case errors.Is(err, channel.ErrNotLinked):
		status, p.Title, p.LinkTo = http.StatusOK, "Link this address first", l.Address
		p.Problem = "This e-mail address is not linked to a person. The server can send a link to it. Open that link, sign in, and then open the link in the first message again."
	case forwarded:
		status, p.Title = http.StatusForbidden, "This message was sent to another person"
		p.Problem = "You are signed in as " + safehtml.Plain(other.name) + ". The message was sent to " + l.Address + ", and its link would decide as the person with that address. Decide in the inbox, as yourself."
	}
	c.write(w, status, p)
}

// showRequest writes the page of a request. p says what was wrong with the form that was sent.
func (c *Channel) showRequest(w http.ResponseWriter, desk channel.Desk, l link, v visit, p page) {
	sent, status := p.Problem != "", http.StatusOK
	p.Request, p.Inbox, p.Title = &v.request, desk.RequestURL(l.Request), safehtml.Plain(v.request.Kind)
	if v.request.Presentation != nil {
		p.Title = v.request.Presentation.Title
	}
	if problem := v.problem(l); problem != "" {
		p.Problem, p.Choices, p.SignIn = problem, nil, v.request.State == "pending" && v.needsSignIn()
		if sent && !v.decided() {
			status = http.StatusConflict
		}
	} else {
		p.As, p.Address = safehtml.Plain(v.name), l.Address
		if p.Choices == nil {
			p.Choices = v.choices("", nil)
		}
		if sent {
			status = http.StatusUnprocessableEntity
		}
	}
	c.write(w, status, p)
}

func (c *Channel) sender(l link) channel.Sender {
	return channel.Sender{Account: l.Account, Channel: c.Kind(), ID: l.Address, Name: l.Address}
}

// decide does what the form says.
func (c *Channel) decide(w http.ResponseWriter, r *http.Request, desk channel.Desk, l link) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		c.write(w, http.StatusForbidden, page{Title: "Open the link in the message", Problem: "This form was sent from another site.", Inbox: desk.RequestURL(l.Request)})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		c.write(w, http.StatusBadRequest, page{Title: "The form cannot be read", Inbox: desk.RequestURL(l.Request)})
		return
	}
	key := r.PostForm.Get("action")
	if key == actionLink {
		c.sendLink(w, r, desk, l)
		return
	}
	v, err := c.open(r, desk, l)
	if err != nil {
		c.showError(w, desk, l, err)
		return
	}
	if v.request.Presentation == nil {
		c.showRequest(w, desk, l, v, page{})
		return
	}
	all := v.choices(key, r.PostForm)
	i := slices.IndexFunc(all, func(one choice) bool { return one.Key == key })
	if i < 0 || v.needsSignIn() {
		c.showRequest(w, desk, l, v, page{Problem: "Choose one of the answers."})
		return
	}
	answer, err := all[i].answer()
	if err != nil {
		all[i] = all[i].withErrors(err)
		c.showRequest(w, desk, l, v, page{Problem: all[i].Label + ": " + safehtml.Plain(err.Error()), Choices: all})
		return
	}
	done := page{Title: "Recorded: " + all[i].Label, Inbox: desk.RequestURL(l.Request), Problem: "Your answer is recorded. You can close this page."}
	switch all[i].Name {
	case nameEscalate:
		_, err = v.person.ActOnce(r.Context(), l.Request, client.ActionEscalate, api.RequestAction{}, "email-"+l.ID+"-escalate")
	case nameAsk:
		var asked api.RequestAction
		if err = json.Unmarshal(answer, &asked); err == nil {
			_, err = v.person.ActOnce(r.Context(), l.Request, client.ActionClarify, asked, ident.Derive("email-ask", l.ID, asked.Text))
		}
		done.Problem = "The agent gets your question. This link still decides."
	default:
		err = v.vote(r.Context(), l, answer)
	}
	switch {
	case errors.Is(err, errUsed):
		c.write(w, http.StatusConflict, page{Title: "This link was used before", Problem: "A link decides once. Open the request in the inbox to decide again.", Inbox: desk.RequestURL(l.Request)})
	case err != nil:
		c.showRequest(w, desk, l, v, page{Problem: explain(err), Choices: all})
	default:
		c.write(w, http.StatusOK, done)
	}
}

// errUsed says that the link has decided before.
var errUsed = errors.New("email: the link was used before")

// vote decides the request, with what the page shows as the rendering.
func (v visit) vote(ctx context.Context, l link, answer json.RawMessage) error {
	rendering, err := v.recordPage(ctx, l)
	if err == nil {
		_, err = v.person.DecideWithin(ctx, l.Request, api.Decide{ResumeID: "email-" + l.ID, Answer: answer, Shown: l.Digest, Rendering: rendering}, decideWait)
	}
	problem, _ := errors.AsType[*api.Problem](err)
	switch {
	case problem != nil && problem.Code == "resume_id_reused", err == nil && withdrawn(ctx, v.person, l.Request):
		return errUsed
	case errors.Is(err, client.ErrPending):
		return nil
	}
	return err
}

// withdrawn reports whether the vote of a person does not count any more: the decision of the link
// was made before, and then undone.
func withdrawn(ctx context.Context, person *client.Client, id string) bool {
	r, err := person.Request(ctx, id)
	return err == nil && r.State == "pending" && r.Activity != nil && !r.Activity.Voted
}

// pageTemplateName is the version of the text of a page. Count it up if the same request gives
// another text.
const pageTemplateName = "page@2"

// recordPage records what the page of a link showed, and returns its hash; "" if the request has
// changed since.
func (v visit) recordPage(ctx context.Context, l link) (string, error) {
	if v.request.Shown != l.Digest {
		return "", nil
	}
	rendering := api.NewRendering(pageText(v.request), "email", pageTemplateName)
	_, err := v.person.Act(ctx, l.Request, client.ActionView, api.RequestAction{Shown: l.Digest, Rendering: &rendering})
	return rendering.Hash, err
}

// pageText is what the page shows of a request.
func pageText(r api.Request) string {
	p := r.Presentation
	lines := []string{p.Title, p.Sentence}
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" {
				lines = append(lines, text)
			}
		}
	}
	for _, f := range p.Facts {
		add(f.Label, f.Value, f.Was)
	}
	for _, e := range p.Evidence {
		add(e.Title, e.Source, e.Text, e.Was, e.URL)
	}
	for _, q := range p.Said {
		add(q.By, q.Text)
	}
	if a := r.Activity; a != nil {
		for _, c := range a.Clarifications {
			add(c.By, safehtml.Plain(c.Text))
			if c.Reply != nil {
				add(c.Reply.By, safehtml.Plain(c.Reply.Text))
			}
		}
		add(riskName(a.Risk), strings.Join(a.Rules, ", "), a.Reason, a.Progress)
	}
	return strings.Join(lines, "\n")
}

// explain words an error of the API for the person.
func explain(err error) string {
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Detail != "" {
		return safehtml.Plain(problem.Detail)
	}
	return "The server could not process this. Try again, or open the request in the inbox."
}

func (c *Channel) write(w http.ResponseWriter, status int, p page) {
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // the person is gone
}
