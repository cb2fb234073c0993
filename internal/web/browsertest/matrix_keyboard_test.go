package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const ctrl = 2 // the modifier of chromedp.KeyModifiers

// tabTo presses the tab key until an element has the focus.
func (b *tab) tabTo(selector string) {
	b.Helper()
	for range 60 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if eval[bool](b, `document.activeElement?.matches(`+"`"+selector+"`"+`) ?? false`) {
			return
		}
	}
	b.save("failed")
	b.Fatalf("the tab key does not reach %s\n%s", selector, b.text())
}

// A person without a mouse signs in, approves, rejects, edits and decides a batch.
func TestMatrix_KeyboardOnly(t *testing.T) {
	s := openServer(t)
	password := invite(t, s)
	rejected := ask(t, s, "inproc:test-refund", "refund-8", `{"order":8,"payment":8,"amount":"20.00"}`)
	edited := ask(t, s, "inproc:test-refund", "refund-9", `{"order":9,"payment":9,"amount":"30.00"}`)
	b := newTab(t, s, desk)

	b.open("/signin?return=/requests/" + rejected)
	b.tabTo(`[name="name"]`)
	b.do(chromedp.KeyEvent("ann"))
	b.tabTo(`[name="password"]`)
	b.do(chromedp.KeyEvent(password), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".decide"))

	b.do(chromedp.KeyEvent("r"), chromedp.WaitVisible("dialog.actiondialog form"))
	b.do(chromedp.KeyEvent("the customer called"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	b.waitText("Rejected by ann")
	wantDecided(t, s, rejected, "ann", "reject")

	b.open("/requests/" + edited)
	b.do(chromedp.KeyEvent("e"), chromedp.WaitVisible("dialog.actiondialog form"))
	b.tabTo(amount)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(ctrl)), chromedp.KeyEvent("19.50"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	b.waitText("Approved by ann")
	wantEdited(t, s, edited, "19.50")

	ids := askSimilar(t, s)
	b.open("/inbox")
	b.tabTo(`.batch a`)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(approveBatch))
	b.tabTo(`[name="item"]`)
	b.do(chromedp.KeyEvent(" "))
	b.tabTo(approveBatch)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(sendBatch))
	b.tabTo(sendBatch)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitText("Results, one by one")
	wantDecided(t, s, ids[2], "ann", "approve")
	if r := request(t, s, ids[0]); r.Decision != nil {
		t.Errorf("a request that was not selected: %+v", r.Decision)
	}
}

// A dialog closes with the Escape key, and the focus returns to where it was.
func TestMatrix_EscapeClosesTheDialog(t *testing.T) {
	s := openServer(t)
	id := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	b := openTab(t, s, "ann", desk)
	b.open("/requests/" + id)
	b.tabTo(".decide .btn.primary")
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog.actiondialog form"), chromedp.KeyEvent(kb.Escape))
	b.do(chromedp.WaitNotPresent("dialog.actiondialog"))
	if !eval[bool](b, `document.activeElement.matches(".decide .btn.primary")`) {
		t.Error("the focus is lost")
	}
}

// Without scripts the edit form shows its changes, switches to JSON and back, and keeps them.
func TestMatrix_EditWithoutScripts(t *testing.T) {
	s := openServer(t)
	password := invite(t, s)
	id := ask(t, s, "inproc:test-refund", "refund-1", `{"order":1,"payment":9007199254740993,"amount":"120.00"}`)
	b := newTab(t, s, phone)
	b.do(noScript)
	b.open("/signin?return=/requests/" + id + "/edit")
	b.do(chromedp.SendKeys(`[name="name"]`, "ann"), chromedp.SendKeys(`[name="password"]`, password), chromedp.Click(`form:not([data-passkey]) button`))
	b.fill(amount, "77.00")
	b.do(chromedp.Click(`[value="preview"]`), chromedp.WaitVisible(".difft"), chromedp.Click(`[value="json"]`), chromedp.WaitVisible("#raw"), chromedp.Click(`[value="form"]`))
	b.do(chromedp.WaitVisible(amount))
	b.wantValue(amount, "77.00")
	b.wantValue(`[name="v/payment"]`, "9007199254740993")
	b.do(chromedp.Click(send))
	b.waitText("Approved by ann")
	wantEdited(t, s, id, "77.00")
}
