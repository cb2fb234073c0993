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
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/safehtml"
)

//go:embed page.html
var pageSource string

var (
	pageTemplate = template.Must(template.New("page").Parse(pageSource))
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
	// Facts are the arguments of an approval.
	Facts []api.Fact
	// Decide says that the form is shown. LinkTo, if set, is the address that can be linked.
	Decide bool
	Reason string
	LinkTo string
	Inbox  string
}

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
			c.show(w, r, desk, l, page{})
		case http.MethodPost:
			c.decide(w, r, desk, l)
		default:
			h.Set("Allow", "GET, HEAD, POST")
			c.write(w, http.StatusMethodNotAllowed, page{Title: "This method is not allowed"})
		}
	})
}

// show writes the page with the current state of the request. p holds what was typed and what was
// wrong with it.
func (c *Channel) show(w http.ResponseWriter, r *http.Request, desk channel.Desk, l link, p page) {
	p.Inbox = desk.RequestURL(l.Request)
	request, err := c.load(r.Context(), desk, l)
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	switch {
	case errors.Is(err, channel.ErrNotLinked):
		p.Title = "Link this address first"
		p.Problem = "This e-mail address is not linked to a person. The server can send a link to it. Open that link, sign in, and then open the link in the first message again."
		p.LinkTo = l.Address
		c.write(w, status, p)
		return
	case err != nil:
		p.Title, p.Problem = "The request cannot be shown", explain(err)
		c.write(w, http.StatusConflict, p)
		return
	}
	p.Title, p.Facts = describe(request)
	switch {
	case request.State != "pending":
		p.Problem = "This request is closed."
		if d := request.Decision; d != nil {
			p.Problem = "This request was decided: " + d.Verdict + " by " + safehtml.Plain(d.By) + "."
		}
	case request.Shown != l.Digest:
		p.Problem = "This request has changed since the message was sent. Open it in the inbox to see what changed."
	default:
		p.Decide = request.Kind == fermata.Approval.Name() && !needsInbox(request.Activity)
	}
	c.write(w, status, p)
}

// needsInbox reports whether the form of the page lacks what a decision needs: the typed name of
// the object, or a reason code.
func needsInbox(a *api.Activity) bool {
	return a != nil && (a.Confirm != "" || len(a.RejectReasons) > 0)
}

func (c *Channel) sender(l link) channel.Sender {
	return channel.Sender{Account: l.Account, Channel: c.Kind(), ID: l.Address, Name: l.Address}
}

// load returns the request as the owner of the address sees it.
func (c *Channel) load(ctx context.Context, desk channel.Desk, l link) (api.Request, error) {
	person, _, err := desk.Client(ctx, c.sender(l))
	if err != nil {
		return api.Request{}, err
	}
	return person.Request(ctx, l.Request)
}

// decide decides the request as the form says.
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
	if r.PostForm.Get("verb") == verbLink {
		c.sendLink(w, r, desk, l)
		return
	}
	answer := fermata.Decision{Verb: fermata.Verb(r.PostForm.Get("verb")), Reason: strings.TrimSpace(r.PostForm.Get("reason"))}
	again := page{Reason: answer.Reason}
	switch {
	case answer.Verb != fermata.VerbApprove && answer.Verb != fermata.VerbReject:
		again.Problem = "Choose Approve or Reject."
	case answer.Verb == fermata.VerbReject && answer.Reason == "":
		again.Problem = "Say why: the agent reads the reason."
	}
	if again.Problem != "" {
		c.show(w, r, desk, l, again)
		return
	}
	person, _, err := desk.Client(r.Context(), c.sender(l))
	if err != nil {
		c.show(w, r, desk, l, again)
		return
	}
	body, err := json.Marshal(answer)
	rendering := ""
	if err == nil {
		rendering, err = recordPage(r.Context(), person, l)
	}
	if err == nil {
		_, err = person.DecideWithin(r.Context(), l.Request, api.Decide{ResumeID: "email-" + l.ID, Answer: body, Shown: l.Digest, Rendering: rendering}, decideWait)
	}
	problem, _ := errors.AsType[*api.Problem](err)
	switch {
	case problem != nil && problem.Code == "resume_id_reused", err == nil && withdrawn(r.Context(), person, l.Request):
		c.write(w, http.StatusConflict, page{Title: "This link was used before", Problem: "A link decides once. Open the request in the inbox to decide again.", Inbox: desk.RequestURL(l.Request)})
		return
	case err != nil && !errors.Is(err, client.ErrPending):
		again.Problem = explain(err)
		c.show(w, r, desk, l, again)
		return
	}
	done := page{Title: "Approved", Inbox: desk.RequestURL(l.Request), Problem: "Your approval is recorded. You can close this page."}
	if answer.Verb == fermata.VerbReject {
		done.Title, done.Problem = "Denied", "Your decision is recorded, and the agent gets the reason. You can close this page."
	}
	c.write(w, http.StatusOK, done)
}

// withdrawn reports whether the vote of a person does not count any more: the decision of the link
// was made before, and then undone.
func withdrawn(ctx context.Context, person *client.Client, id string) bool {
	r, err := person.Request(ctx, id)
	return err == nil && r.State == "pending" && r.Activity != nil && !r.Activity.Voted
}

// pageTemplateName is the version of the text of a page. Count it up if the same request gives
// another text.
const pageTemplateName = "page@1"

// recordPage records what the page of a link showed, and returns its hash; "" if the request has
// changed since.
func recordPage(ctx context.Context, person *client.Client, l link) (string, error) {
	request, err := person.Request(ctx, l.Request)
	if err != nil || request.Shown != l.Digest {
		return "", err
	}
	text, facts := describe(request)
	for _, f := range facts {
		text += "\n" + f.Label + "\n" + f.Value
	}
	rendering := api.NewRendering(text, "email", pageTemplateName)
	_, err = person.Act(ctx, l.Request, client.ActionView, api.RequestAction{Shown: l.Digest, Rendering: &rendering})
	return rendering.Hash, err
}

// explain words an error of the API for the person.
func explain(err error) string {
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Detail != "" {
		return safehtml.Plain(problem.Detail)
	}
	return "The server could not process this. Try again, or open the request in the inbox."
}

// describe returns a title and the facts of a request.
func describe(r api.Request) (string, []api.Fact) {
	if r.Presentation == nil {
		return safehtml.Plain(r.Kind), nil
	}
	return r.Presentation.Title, r.Presentation.Facts
}

func (c *Channel) write(w http.ResponseWriter, status int, p page) {
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // the person is gone
}
