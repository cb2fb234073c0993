package browsertest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// zoomed is a window of 1280 × 1024 at 400 %.
var zoomed = size{320, 256}

const (
	amount = `[name="v/amount"]`
	send   = `form.action button[value="send"]`
)

// stuck is the height of all bars that do not scroll with the page.
const stuck = `[...document.querySelectorAll("body *")].filter((el) => ["fixed", "sticky"].includes(getComputedStyle(el).position) && el.checkVisibility() && !el.closest("[popover], .sr"))
	.reduce((sum, el) => sum + Math.round(el.getBoundingClientRect().height), 0)`

// fill replaces the text of a field as a person does.
func (b *tab) fill(field, text string) {
	b.Helper()
	b.do(chromedp.WaitVisible(field))
	eval[bool](b, `document.querySelector('`+field+`').select(); true`)
	b.do(chromedp.SendKeys(field, text))
}

// wantValue fails unless a field has a value.
func (b *tab) wantValue(field, value string) {
	b.Helper()
	if got := eval[string](b, `document.querySelector('`+field+`')?.value ?? "none"`); got != value {
		b.Errorf("%s is %q, want %q", field, got, value)
	}
}

// request returns a request as the API has it.
func request(t *testing.T, s *webtest.Server, id string) (r api.Request) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.SignIn("eve").Get("/api/v1/requests/"+id).Body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// wantEdited fails unless a request was approved with another amount.
func wantEdited(t *testing.T, s *webtest.Server, id, amount string) {
	t.Helper()
	r := request(t, s, id)
	if r.Decision == nil {
		t.Fatalf("not decided: %+v", r)
	}
	if text, _ := json.Marshal(r); !strings.Contains(string(text), amount) {
		t.Errorf("the decision has no %s: %s", amount, text)
	}
}

// invite makes ann a member who signs in with a password, and returns the password.
func invite(t *testing.T, s *webtest.Server) (password string) {
	t.Helper()
	b := s.SignIn("admin")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v1/invitations", strings.NewReader(`{"name":"ann","roles":["admin"]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	var invitation api.Invitation
	if got := b.Do(r); json.Unmarshal([]byte(got.Body), &invitation) != nil || invitation.Path == "" {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	tab := newTab(t, s, zoomed)
	tab.open(invitation.Path)
	tab.check("invitation")
	password = "correct horse battery"
	tab.fill(`[name="password"]`, password)
	tab.do(chromedp.Click(`form:not([data-passkey]) button`), chromedp.WaitVisible(".inbox"))
	return password
}

func TestMatrix_ZoomNeedsNoSidewaysScrolling(t *testing.T) {
	s := openServer(t)
	long := strings.Repeat("verylongword", 30)
	id := ask(t, s, "inproc:test-refund", long, `{"order":17,"payment":9007199254740993,"amount":"120.00","note":"`+long+`"}`)
	b := openTab(t, s, "ann", zoomed)
	for _, p := range []struct{ name, path string }{
		{"inbox", "/inbox"}, {"chosen", "/inbox?id=" + id}, {"request", "/requests/" + id}, {"approve", "/requests/" + id + "/approve"}, {"edit", "/requests/" + id + "/edit"},
	} {
		b.open(p.path)
		b.check(p.name)
		if covered := eval[int](b, stuck); covered > 80 {
			t.Errorf("%s: bars that do not scroll cover %d of 256 px", p.name, covered)
		}
	}
	b.do(chromedp.Click(`[value="json"]`), chromedp.WaitVisible("#raw"))
	b.check("json")
	visitor := newTab(t, s, zoomed)
	for _, colours := range []string{"light", "dark"} {
		visitor.do(scheme(colours))
		for _, p := range []struct{ name, path string }{{"signin", "/signin?return=/inbox"}, {"expired", "/inbox"}, {"signed-out", "/signin?bye"}} {
			visitor.open(p.path)
			visitor.check(p.name + "-" + colours)
		}
	}
}

// On a slow network people press keys and buttons twice.
func TestMatrix_SlowNetwork(t *testing.T) {
	var delay atomic.Int64 // of each call of the API
	s := openServer(t, func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Duration(delay.Load())) // a slow network, not a wait of the test
			api.ServeHTTP(w, r)
		})
	})
	password := invite(t, s)
	first := ask(t, s, "inproc:test-refund", "refund-1", `{"order":1,"payment":1,"amount":"120.00"}`)
	second := ask(t, s, "inproc:test-refund", "refund-2", `{"order":2,"payment":2,"amount":"20.00"}`)
	delay.Store(int64(150 * time.Millisecond))

	b := newTab(t, s, desk)
	b.open("/inbox")
	b.do(chromedp.Click(".oops .btn.primary"))
	b.fill(`[name="name"]`, "ann")
	b.fill(`[name="password"]`, password)
	b.do(chromedp.DoubleClick(`form:not([data-passkey]) button`), chromedp.WaitVisible(".inbox"))

	b.open("/inbox?id=" + first)
	b.do(chromedp.KeyEvent("a"), chromedp.KeyEvent("a"), chromedp.WaitVisible("dialog.actiondialog form"))
	eval[bool](b, `new Promise((done) => setTimeout(() => done(true), 700))`) // the second response
	if n := eval[int](b, `document.querySelectorAll("dialog.actiondialog").length`); n != 1 {
		t.Errorf("%d dialogs are open", n)
	}
	ctrlEnter := chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(2))
	b.do(ctrlEnter, ctrlEnter)
	b.waitText("Approved.")

	b.open("/requests/" + second + "/edit")
	b.fill(amount, "19.50")
	b.do(chromedp.DoubleClick(send))
	b.waitText("Approved")
	wantEdited(t, s, second, "19.50")
}

func TestMatrix_ServerRestart(t *testing.T) {
	s := openServer(t)
	password := invite(t, s)
	id := ask(t, s, "inproc:test-refund", "refund-1", `{"order":1,"payment":1,"amount":"120.00"}`)
	inbox, edit, signIn := openTab(t, s, "ann", desk), openTab(t, s, "bob", phone), newTab(t, s, phone)
	inbox.waitText("refund")
	edit.open("/requests/" + id + "/edit")
	edit.fill(amount, "99.00")
	signIn.open("/signin?return=/requests/" + id)
	signIn.fill(`[name="name"]`, "ann")
	signIn.fill(`[name="password"]`, password)

	s.Restart(func() {})
	ask(t, s, "inproc:content-review", "article-cocoa", `{"topic":"cocoa"}`) // before the page is connected again
	signIn.do(chromedp.Click(`form:not([data-passkey]) button`))
	signIn.waitText("What will run")
	edit.do(chromedp.Click(send))
	edit.waitText("Approved")
	wantEdited(t, s, id, "99.00")
	inbox.waitText("cocoa")
	inbox.waitText("Approved") // the row of the first request
	signIn.waitText("Changed since you opened it")
}

// A form keeps its text when the request was decided elsewhere, and sending it has no effect.
func TestMatrix_DecidedOrEditedElsewhere(t *testing.T) {
	s := openServer(t)
	approved := ask(t, s, "inproc:test-refund", "refund-1", `{"order":1,"payment":1,"amount":"120.00"}`)
	edited := ask(t, s, "inproc:test-refund", "refund-2", `{"order":2,"payment":2,"amount":"20.00"}`)
	inbox, edit, page := openTab(t, s, "ann", desk), openTab(t, s, "ann", phone), openTab(t, s, "ann", phone)
	inbox.open("/inbox?id=" + edited)
	inbox.do(chromedp.KeyEvent("r"), chromedp.WaitVisible("dialog.actiondialog form"))
	inbox.fill("#text", "the customer called")
	edit.open("/requests/" + approved + "/edit")
	edit.fill(amount, "1.00")
	page.open("/requests/" + edited)

	bob := openTab(t, s, "bob", phone)
	bob.open("/requests/" + approved + "/approve")
	bob.do(chromedp.Click(send))
	bob.waitText("Approved")
	bob.open("/requests/" + edited + "/edit")
	bob.fill(amount, "18.00")
	bob.do(chromedp.Click(send))
	bob.waitText("Approved")

	page.waitText("Changed since you opened it")
	if n := eval[int](page, `document.querySelectorAll(".decide a.btn[href]").length`); n != 0 {
		t.Errorf("%d buttons work", n)
	}
	edit.do(chromedp.Click(send), chromedp.WaitVisible(".notice.warn"))
	edit.wantValue(amount, "1.00")
	edit.check("decided-elsewhere")
	inbox.do(chromedp.Click("dialog "+send), chromedp.WaitVisible(".notice.warn"))
	inbox.wantValue("#text", "the customer called")
	inbox.check("edited-elsewhere")
	wantEdited(t, s, edited, "18.00")
	if r := request(t, s, approved); r.Decision.By != "bob" {
		t.Errorf("decided by %q", r.Decision.By)
	}
}

// A form that was filled while the session ended can be sent after signing in again.
func TestMatrix_SessionExpiredWhileTyping(t *testing.T) {
	s := openServer(t)
	password := invite(t, s)
	id := ask(t, s, "inproc:test-refund", "refund-1", flagged)
	other := ask(t, s, "inproc:test-refund", "refund-2", `{"order":2,"payment":2,"amount":"20.00"}`)
	for _, c := range []struct {
		name, path, field, text, done string
		window                        size
		open                          []chromedp.Action[chromedp.Void]
	}{
		{"inbox", "/inbox?id=" + other, "#text", "the customer called", "Rejected", desk, []chromedp.Action[chromedp.Void]{chromedp.KeyEvent("r"), chromedp.WaitVisible("dialog.actiondialog form")}},
		{"request", "/requests/" + id + "/comment", "#text", "I will look <soon> & \"well\"", "well", phone, nil},
		{"edit", "/requests/" + id + "/edit", amount, "77.00", "Approved", phone, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openTab(t, s, "ann", c.window)
			b.open(c.path)
			b.do(c.open...)
			b.fill(c.field, c.text)
			if c.name == "edit" {
				b.fill(`[name="v/note"]`, "checked")
			}
			eval[bool](b, `fetch("/signout", {method: "POST"}).then(() => true)`)
			b.do(chromedp.Click(send))
			b.waitText("What you typed is kept on this page.")
			b.check("expired")
			link := eval[string](b, `document.querySelector("a.btn.primary[target=_blank]").href`)
			tab := newTabIn(b, link)
			tab.fill(`[name="name"]`, "ann")
			tab.fill(`[name="password"]`, password)
			tab.do(chromedp.Click(`form:not([data-passkey]) button`), chromedp.WaitVisible("form.action"))
			b.do(chromedp.Click("form.notice button"))
			b.waitText(c.done)
		})
	}
	wantEdited(t, s, id, "77.00")
}
