package browsertest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fermata-go/fermata/internal/web/webtest"
)

const (
	approveBatch = `button[name="op"][value="approve"]`
	rejectBatch  = `button[name="op"][value="reject"]`
	// the button of the confirmation
	sendBatch = `button[name="op"][value^="send-"]`
)

// askSimilar starts three refunds and returns the ids of their requests.
func askSimilar(t *testing.T, s *webtest.Server) (ids []string) {
	t.Helper()
	for i := range 3 {
		ids = append(ids, ask(t, s, "inproc:test-refund", fmt.Sprintf("refund-%d", i), fmt.Sprintf(`{"order":%d,"payment":%d,"amount":"2%d.00"}`, 100+i, 500+i, i)))
	}
	return ids
}

// wantDecided fails unless a request was decided by a person with a verdict.
func wantDecided(t *testing.T, s *webtest.Server, id, by, verdict string) {
	t.Helper()
	if r := request(t, s, id); r.Decision == nil || r.Decision.By != by || r.Decision.Verdict != verdict {
		t.Errorf("%s: %+v, want %s by %s", id, r.Decision, verdict, by)
	}
}

func TestMatrix_BatchOnAPhoneAndZoomed(t *testing.T) {
	s := openServer(t)
	ids := askSimilar(t, s)
	for name, window := range map[string]size{"phone": phone, "zoom": zoomed} {
		b := openTab(t, s, "ann", window)
		for _, colours := range []string{"light", "dark"} {
			b.do(scheme(colours))
			b.open("/batch?like=" + ids[0])
			b.check(name + "-" + colours)
		}
	}
	b := openTab(t, s, "ann", phone, noScript)
	b.do(chromedp.Click(`.batch a`), chromedp.WaitVisible(approveBatch), chromedp.Click(`[name="item"]`), chromedp.Click(approveBatch), chromedp.Click(sendBatch))
	b.waitText("Results, one by one")
	wantDecided(t, s, ids[1], "ann", "approve")
	if n := eval[int](b, `document.querySelectorAll("td .pill.ok").length`); n != 2 {
		t.Errorf("%d results, 2 were selected", n)
	}
}

// Another person decides one of the requests while the batch is open; the server restarts.
func TestMatrix_BatchDecidedElsewhere(t *testing.T) {
	s := openServer(t)
	ids := askSimilar(t, s)
	ann := openTab(t, s, "ann", desk)
	ann.open("/batch?like=" + ids[0])
	bob := openTab(t, s, "bob", phone)
	bob.open("/requests/" + ids[1] + "/reject")
	bob.fill("#text", "not this one")
	bob.do(chromedp.Click(send))
	bob.waitText("Rejected")
	s.Restart(func() {})
	ann.do(chromedp.Click(approveBatch), chromedp.WaitVisible(sendBatch))
	ann.check("confirmation")
	ann.do(chromedp.Click(sendBatch))
	ann.waitText("Results, one by one")
	ann.check("results")
	wantDecided(t, s, ids[0], "ann", "approve")
	wantDecided(t, s, ids[1], "bob", "reject")
	wantDecided(t, s, ids[2], "ann", "approve")
	if n := eval[int](ann, `document.querySelectorAll("td .pill.danger").length`); n != 1 {
		t.Errorf("%d requests are named as not recorded\n%s", n, ann.text())
	}
}

// The button is pressed twice on a slow network.
func TestMatrix_BatchOnASlowNetwork(t *testing.T) {
	var delay atomic.Int64
	s := openServer(t, func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Duration(delay.Load())) // a slow network, not a wait of the test
			api.ServeHTTP(w, r)
		})
	})
	ids := askSimilar(t, s)
	b := openTab(t, s, "ann", desk)
	b.open("/batch?like=" + ids[0])
	delay.Store(int64(30 * time.Millisecond))
	b.do(chromedp.Click(approveBatch), chromedp.DoubleClick(sendBatch))
	b.waitText("Results, one by one")
	for _, id := range ids {
		wantDecided(t, s, id, "ann", "approve")
	}
	if n := eval[int](b, `document.querySelectorAll("td .pill.danger").length`); n != 0 {
		t.Errorf("%d failures\n%s", n, b.text())
	}
}

func TestMatrix_BatchSessionExpiredWhileTyping(t *testing.T) {
	s := openServer(t)
	password := invite(t, s)
	ids := askSimilar(t, s)
	b := openTab(t, s, "ann", desk)
	b.open("/batch?like=" + ids[0])
	b.do(chromedp.Click(`[name="item"]`))
	b.fill("#text", "the customer \"called\"")
	eval[bool](b, `fetch("/signout", {method: "POST"}).then(() => true)`)
	b.do(chromedp.Click(rejectBatch))
	b.waitText("What you typed is kept on this page.")
	tab := newTabIn(b, eval[string](b, `document.querySelector("a.btn.primary[target=_blank]").href`))
	tab.fill(`[name="name"]`, "ann")
	tab.fill(`[name="password"]`, password)
	tab.do(chromedp.Click(`form:not([data-passkey]) button`), chromedp.WaitVisible(approveBatch))
	b.do(chromedp.Click("form.notice button"), chromedp.Click(sendBatch))
	b.waitText("Results, one by one")
	wantDecided(t, s, ids[1], "ann", "reject")
	wantDecided(t, s, ids[2], "ann", "reject")
	if r := request(t, s, ids[0]); r.Decision != nil {
		t.Errorf("a request that was not selected: %+v", r.Decision)
	}
}

// newTabIn opens a link in a new tab of the same browser, which shares the cookies.
func newTabIn(b *tab, link string) *tab {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(link)); err != nil {
		b.Fatal(err)
	}
	return &tab{b.T, ctx, b.server}
}
