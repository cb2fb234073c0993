package web_test

import (
	"net/http"
	"regexp"
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
		b.Post("/requests/"+id+"/approve", hidden(form)...)
	}
	if got := p.all(); len(got) != 1 || got[0].Payment != "9007199254740993" {
		t.Errorf("%+v", got)
	}
	want(t, b.Get("/requests/"+id), http.StatusOK, "Approved by ann")
	record := b.Get("/api/v1/requests/" + id)
	want(t, record, http.StatusOK, `"channel":"web"`, `"template":"web-approval@2"`)
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
	want(t, b.Post("/requests/"+id+"/approve", "idempotency_key", "k"), http.StatusUnprocessableEntity, "first: /amount, /note.")
	want(t, b.Post("/requests/"+id+"/edit", "idempotency_key", "k", "mode", "json", "raw", `{"order":18,"payment":1,"amount":"1","note":"a\u202eb"}`), http.StatusUnprocessableEntity, "first: /note.", `name="confirm" value="/note"`)
	if len(p.all()) != 0 {
		t.Fatal("it ran without the confirmation")
	}
	want(t, b.Follow(b.Post("/requests/"+id+"/edit", "idempotency_key", "k", "mode", "json", "raw", `{"order":18,"payment":1,"amount":"1","note":"a\u202eb"}`, "confirm", "/note")), http.StatusOK, "Approved")
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
	want(t, b.Post("/requests/"+id+"/approve", "shown", "another", "idempotency_key", "k"), http.StatusConflict, "Changed since you opened it", "Review changes")
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
}

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
	want(t, page, http.StatusOK, "Five things about tea", "asks for a review", "respond?set=%2Faction%3D%22approve%22")
	form := b.Get("/requests/" + id + "/respond?set=%2Faction%3D%22approve%22")
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
	shown := regexp.MustCompile(`data-shown="([^"]+)"`).FindStringSubmatch(b.Get("/requests/" + id).Body)[1]
	if got := b.Post("/requests/"+id+"/viewed", "shown", shown); got.Status != http.StatusNoContent {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	want(t, b.Get("/api/v1/requests/"+id), http.StatusOK, `"channel":"web"`)
}
