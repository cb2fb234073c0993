package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// paid records the refunds that were made.
type paid struct {
	mu   sync.Mutex
	list []refund
}

func (p *paid) add(r refund) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, r)
}

func (p *paid) all() []refund {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]refund{}, p.list...)
}

func openRefunds(t *testing.T) (*webtest.Server, *paid) {
	t.Helper()
	p := new(paid)
	return open(t, func(c *webtest.Config) { c.Graphs = append(c.Graphs, refundGraph(t, p.add)) }), p
}

const refundInput = `{"order":17,"payment":9007199254740993,"amount":"120.00"}`

func TestRequest_ShowsFactsAndModelTextApart(t *testing.T) {
	s, _ := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", `{"order":17,"payment":9007199254740993,"amount":"120.00","note":"a\u202eb"}`)
	got := s.SignIn("ann").Get("/requests/" + id)
	want(t, got, http.StatusOK, "9007199254740993", "U+202E", "The agent says", "&lt;b&gt;damaged&lt;/b&gt;", `href="/requests/`+id+`/approve"`, "1 invisible or imitating character is shown")
	for _, fact := range regexp.MustCompile(`(?s)<table class="args" data-fact>.*?</table>`).FindAllString(got.Body, -1) {
		if strings.Contains(fact, "damaged") {
			t.Errorf("text of the model among the facts: %s", fact)
		}
	}
}

func TestRequest_ApproveRunsOnce(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/approve")
	want(t, form, http.StatusOK, "Approve", "120.00")
	for range 2 { // a double click sends the same form again
		want(t, b.Follow(b.Post("/requests/"+id+"/approve", hidden(form)...)), http.StatusOK, "Approved by ann")
	}
	if got := p.all(); len(got) != 1 || got[0].Payment != "9007199254740993" {
		t.Errorf("%+v", got)
	}
	want(t, b.Get("/requests/"+id), http.StatusOK, "Approved by ann")
	record := b.Get("/api/v1/requests/" + id)
	want(t, record, http.StatusOK, `"channel":"web"`, `"template":"web-approval@3"`)
}

func TestRequest_FlaggedValueMustBeConfirmed(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", `{"order":17,"payment":1,"amount":"1","note":"a\u202eb"}`)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/approve")
	want(t, form, http.StatusOK, `name="confirm" value="/note"`)
	want(t, b.Post("/requests/"+id+"/approve", hidden(form)...), http.StatusUnprocessableEntity, "Confirm each flagged value first: /note.", `name="confirm" value="/note"`)
	want(t, b.Post("/requests/"+id+"/approve", hidden(form, "confirm", "/amount")...), http.StatusUnprocessableEntity, "first: /note.")
	if len(p.all()) != 0 {
		t.Fatal("it ran without the confirmation")
	}
	want(t, b.Follow(b.Post("/requests/"+id+"/approve", hidden(form, "confirm", "/note")...)), http.StatusOK, "Approved")
	if len(p.all()) != 1 {
		t.Error("it did not run")
	}
}

// The flags come from the arguments that the server has, whatever the form says.
func TestRequest_RawPostWithoutConfirmationIsRefused(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", `{"order":17,"payment":1,"amount":"1\u200b","note":"a\u202eb"}`)
	b := s.SignIn("ann")
	want(t, b.Post("/requests/"+id+"/approve", seenOn(b, id, "idempotency_key", "k")...), http.StatusUnprocessableEntity, "first: /amount, /note.")
	want(t, b.Post("/requests/"+id+"/edit", seenOn(b, id, "idempotency_key", "k", "mode", "json", "raw", `{"order":18,"payment":1,"amount":"1","note":"a\u202eb"}`)...), http.StatusUnprocessableEntity, "first: /note.", `name="confirm" value="/note"`)
	if len(p.all()) != 0 {
		t.Fatal("it ran without the confirmation")
	}
	want(t, b.Follow(b.Post("/requests/"+id+"/edit", seenOn(b, id, "idempotency_key", "k", "mode", "json", "raw", `{"order":18,"payment":1,"amount":"1","note":"a\u202eb"}`, "confirm", "/note")...)), http.StatusOK, "Approved")
	if got := p.all(); len(got) != 1 || got[0].Order != 18 {
		t.Errorf("%+v", got)
	}
}

func TestRequest_RejectNeedsReason(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/reject")
	want(t, b.Post("/requests/"+id+"/reject", hidden(form)...), http.StatusUnprocessableEntity, "Give a reason")
	want(t, b.Follow(b.Post("/requests/"+id+"/reject", hidden(form, "text", "too much", "code", "too_risky")...)), http.StatusOK, "Rejected by ann", "too much")
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
}

func TestRequest_EditKeepsTypes(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	path := "/requests/" + id + "/edit"
	form := b.Get(path)
	want(t, form, http.StatusOK, `name="v/amount" value="120.00"`)
	edit := []string{"v/order", "17", "v/payment", "9007199254740993", "v/amount", "80.00"}
	want(t, b.Post(path, hidden(form, append(edit, "op", "preview")...)...), http.StatusOK, "80.00", "<del>")
	if len(p.all()) != 0 {
		t.Fatal("the preview sent the edit")
	}
	want(t, b.Post(path, hidden(form, "v/order", "1,2", "v/amount", "80.00", "op", "send")...), http.StatusUnprocessableEntity, `value="1,2"`, `value="80.00"`, `aria-invalid="true"`)
	want(t, b.Follow(b.Post(path, hidden(form, append(edit, "op", "send")...)...)), http.StatusOK, "Approved")
	if got := p.all(); len(got) != 1 || got[0].Amount != "80.00" || got[0].Payment != "9007199254740993" {
		t.Errorf("%+v", got)
	}
}

func TestRequest_DecidedElsewhere(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	ann, bob := s.SignIn("ann"), s.SignIn("bob")
	form := ann.Get("/requests/" + id + "/reject")
	bob.Post("/requests/"+id+"/approve", hidden(bob.Get("/requests/"+id+"/approve"))...)
	want(t, ann.Post("/requests/"+id+"/reject", hidden(form, "text", "wait & see")...), http.StatusConflict, "already closed", "Approved by bob", "wait &amp; see")
	if len(p.all()) != 1 {
		t.Errorf("%+v", p.all())
	}
}

func TestRequest_ChangedDigestIsNotDecided(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	for name := range map[string]bool{"shown": true, "rendering": true} {
		fields := seenOn(b, id, "idempotency_key", "k")
		fields[slices.Index(fields, name)+1] = "another"
		want(t, b.Post("/requests/"+id+"/approve", fields...), http.StatusConflict, "Changed since you opened it", "Review changes")
	}
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
}

// A form that does not say what its page showed decides and records nothing.
func TestRequest_FormWithoutWhatItShowed(t *testing.T) {
	s, p := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	fields := seenOn(b, id)
	for _, act := range []string{"approve", "viewed", "comment"} {
		for at := 0; at < len(fields); at += 2 {
			want(t, b.Post("/requests/"+id+"/"+act, "idempotency_key", "k", "text", "t", fields[at], fields[at+1]), http.StatusBadRequest, "does not say what its page showed")
		}
	}
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
	if got := b.Get("/api/v1/requests/" + id).Body; strings.Contains(got, `"channel":"web"`) {
		t.Errorf("a view is recorded: %s", got)
	}
}

// A link opens a form, and fills nothing in: its author would decide with the hand of the person
// who opens it.
func TestRequest_LinksFillNothingIn(t *testing.T) {
	s := openDesk(t)
	b := s.SignIn("ann")
	hostile := url.Values{
		"shown": {"sha256:0"}, "rendering": {"sha256:0"}, "idempotency_key": {"chosen"}, "confirm": {"/note"}, "to": {"mallory"}, "text": {"planted"}, "code": {"policy"},
		"span": {"7d"}, "uses": {"999"}, "mode": {"json"}, "raw": {`{"amount":"4900.00"}`}, "v/amount": {"4900.00"}, "set": {`/action="approve"`}, "s/action": {"0"},
		"op": {`set /action="approve"`}, "from": {"inbox"}, "list": {"id=planted&return=//evil.example"},
	}.Encode()
	refund := ask(t, s, "inproc:refund", "r1", `{"order":17,"payment":1,"amount":"1","note":"a\u202eb"}`)
	review := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	for id, acts := range map[string][]string{
		refund: {"approve", "reject", "edit", "ask", "comment", "delegate", "snooze", "extend", "escalate", "remember", "cancel"}, review: {"respond", "comment"},
	} {
		for _, act := range acts {
			path := "/requests/" + id + "/" + act
			plain, linked := b.Get(path), b.Get(path+"?"+hostile)
			want(t, plain, http.StatusOK)
			got := oneKey.ReplaceAllString(strings.Replace(linked.Body, `<input type="hidden" name="list" value="">`, "", 1), "")
			if wanted := oneKey.ReplaceAllString(plain.Body, ""); squeeze(got) != squeeze(wanted) {
				t.Errorf("%s: the link changes the form\n%s\n%s", act, squeeze(got), squeeze(wanted))
			}
		}
	}
	want(t, b.Get("/requests/"+refund+"/approve?"+hostile), http.StatusOK, `name="confirm" value="/note" required>`)
}

var oneKey = regexp.MustCompile(`name="idempotency_key" value="[^"]*"|/signin\?return=[^"]*|return" value="[^"]*"`)

// squeeze removes white space at the ends of lines, and empty lines.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestRequest_SessionEndsWhileTyping(t *testing.T) {
	s, _ := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	got := s.Visitor().Post("/requests/"+id+"/comment", "text", "a long & thoughtful text")
	want(t, got, http.StatusUnauthorized, `value="a long &amp; thoughtful text"`, "/signin?return=", `action="/requests/`+id+`/comment"`)
}

func TestRequest_Actions(t *testing.T) {
	s := openDesk(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	for _, step := range []struct {
		act    string
		fields []string
		text   string
	}{
		{"comment", []string{"text", "looks fine"}, "looks fine"},
		{"ask", []string{"text", "Why 120?"}, "Why 120?"},
		{"claim", nil, "claimed by ann"},
		{"release", nil, "Released."},
		{"snooze", []string{"span", "1h"}, "Snoozed"},
		{"extend", []string{"span", "1d"}, "moved the deadline"},
		{"delegate", []string{"to", "bob"}, "bob"},
		{"escalate", []string{"text", "urgent"}, "escalated it"},
	} {
		path := "/requests/" + id + "/" + step.act
		form := b.Get(path)
		want(t, form, http.StatusOK, `action="`+path+`"`)
		want(t, b.Follow(b.Post(path, hidden(form, step.fields...)...)), http.StatusOK, step.text)
	}
	form := b.Get("/requests/" + id + "/cancel")
	want(t, b.Follow(b.Post("/requests/"+id+"/cancel", hidden(form, "text", "not needed")...)), http.StatusOK, "cancelled")
}

func TestRequest_ContentReviewAnswersByButton(t *testing.T) {
	s := open(t)
	id := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	page := b.Get("/requests/" + id)
	want(t, page, http.StatusOK, "Five things about tea", "asks for a review", `name="op" value="set /action=&#34;approve&#34;"`)
	form := b.Post("/requests/"+id+"/respond", hidden(page, "op", `set /action="approve"`)...)
	want(t, form, http.StatusOK, `value="0" checked`)
	want(t, b.Follow(b.Post("/requests/"+id+"/respond", hidden(form, "s/action", "0")...)), http.StatusOK, "Answered by ann")
}

func TestRequest_UnknownRequestAndAction(t *testing.T) {
	s, _ := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	want(t, b.Get("/requests/nothing"), http.StatusNotFound)
	want(t, b.Get("/requests/"+id+"/nothing"), http.StatusNotFound)
	want(t, s.SignIn("bot", authn.RoleAuditor).Post("/requests/"+id+"/approve", hidden(b.Get("/requests/"+id+"/approve"))...), http.StatusForbidden)
}

func TestRequest_ViewedIsRecorded(t *testing.T) {
	s, _ := openRefunds(t)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	if got := b.Post("/requests/"+id+"/viewed", seenOn(b, id)...); got.Status != http.StatusNoContent {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	want(t, b.Get("/api/v1/requests/"+id), http.StatusOK, `"channel":"web"`)
}
