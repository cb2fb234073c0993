package browsertest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fermata-go/fermata/internal/web/webtest"
)

// focused returns the id of the request whose row has the focus; "" if none has.
func (b *tab) focused() string {
	b.Helper()
	return eval[string](b, `document.activeElement?.closest(".row")?.dataset.id ?? ""`)
}

// shown returns the id of the request on the right; "" if there is none.
func (b *tab) shown() string {
	b.Helper()
	return eval[string](b, `document.querySelector("fermata-request")?.dataset.id ?? ""`)
}

// subject waits for a dialog, and returns the id of the request that it is about.
func (b *tab) subject() string {
	b.Helper()
	b.do(chromedp.WaitVisible("dialog.actiondialog form"))
	return strings.Split(eval[string](b, `document.querySelector("dialog.actiondialog form").getAttribute("action")`), "/")[2]
}

// waitShown waits until the request on the right is another one.
func (b *tab) waitShown(not string) string {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		id, err := tryEval[string](b, `document.readyState === "complete" && document.querySelector("fermata-request")?.dataset.id || ""`)
		if err == nil && id != "" && id != not {
			return id
		}
		if time.Now().After(deadline) {
			b.save("failed")
			b.Fatalf("the page still shows %s\n%s", not, b.text())
		}
	}
}

// askFour starts four refunds, each with its own deadline, and returns the ids of the rows.
func askFour(t *testing.T, s *webtest.Server) (ids []string) {
	t.Helper()
	for i := range 4 {
		ids = append(ids, ask(t, s, "inproc:test-refund", fmt.Sprintf("refund-%d", i), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"2%d.00"}`, i, i)))
	}
	return ids
}

// rows returns the ids of the rows.
func (b *tab) rows() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".row")].map((row) => row.dataset.id)`)
}

// The keys decide the focused row, and then the next row of the same list is shown. The key that
// confirmed cannot confirm the next request, and Enter alone sends nothing.
func TestInbox_KeysDecideTheFocusedRow(t *testing.T) {
	s := openServer(t)
	askFour(t, s)
	ask(t, s, "inproc:content-review", "other", `{"topic":"tea"}`) // not in the list of the search
	b := openTab(t, s, "ann", desk)
	b.open("/inbox?tab=all&q=tool%3Arefund")
	ids := b.rows()
	if len(ids) != 4 {
		t.Fatalf("%d rows", len(ids))
	}
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("a")) // without a pause
	if got := b.focused(); got != "" && got != ids[2] {
		t.Errorf("row %s has the focus", got)
	}
	if got := b.subject(); got != ids[2] {
		t.Fatalf("the dialog is about %s, not the focused %s", got, ids[2])
	}
	if got := b.shown(); got != ids[2] {
		t.Errorf("the page shows %s", got)
	}
	if n := eval[int](b, `document.querySelectorAll(".detail svg[data-use]:empty").length`); n != 0 {
		t.Errorf("%d icons are empty", n)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	time.Sleep(200 * time.Millisecond)
	if r := request(t, s, ids[2]); r.Decision != nil {
		t.Fatalf("Enter alone decided: %+v", r.Decision)
	}
	for range 3 { // the key is pressed again before the next page is there
		b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	}
	if got := b.waitShown(ids[2]); got != ids[3] {
		t.Errorf("after the decision %s is shown, not the next row %s", got, ids[3])
	}
	wantDecided(t, s, ids[2], "ann", "approve")
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)), chromedp.KeyEvent(kb.Enter))
	if got := eval[string](b, `location.search`); !strings.Contains(got, "q=tool%3Arefund") || !strings.Contains(got, "tab=all") {
		t.Errorf("the list is another one: %s", got)
	}
	b.do(chromedp.KeyEvent("r"))
	if got := b.subject(); got != ids[3] {
		t.Fatalf("the dialog is about %s, not the shown %s", got, ids[3])
	}
	b.do(chromedp.KeyEvent("not needed"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	if got := b.waitShown(ids[3]); got != ids[1] {
		t.Errorf("after the last row %s is shown, not %s", got, ids[1])
	}
	wantDecided(t, s, ids[3], "ann", "reject")
	for _, id := range ids[:2] {
		if r := request(t, s, id); r.Decision != nil {
			t.Errorf("%s was not chosen: %+v", id, r.Decision)
		}
	}
}

// The key works on the page of the form too, after the preview of an edit.
func TestForm_ControlEnterAfterThePreview(t *testing.T) {
	s := openServer(t)
	id := ask(t, s, "inproc:test-refund", "refund-1", `{"order":1,"payment":7,"amount":"20.00"}`)
	b := openTab(t, s, "ann", desk)
	b.open("/requests/" + id + "/edit")
	b.fill(amount, "19.00")
	b.do(chromedp.Click(`[value="preview"]`), chromedp.WaitVisible(".difft"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	b.waitText("Approved by ann")
	wantEdited(t, s, id, "19.00")
}

// After random keys, a dialog is about the row that has the focus or, if none has, about the
// request that is shown. Only its confirmation decides.
func TestInbox_DialogsAreAboutTheFocus(t *testing.T) {
	s := openServer(t)
	askFour(t, s)
	b := openTab(t, s, "ann", desk)
	ids := b.rows()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 12 {
		var pressed []string
		for range random.IntN(6) {
			key := []string{"j", "k", kb.ArrowDown, kb.ArrowUp, kb.Tab, "x"}[random.IntN(6)]
			pressed = append(pressed, key)
			b.do(chromedp.KeyEvent(key))
		}
		about := b.focused()
		if about == "" {
			about = b.shown()
		}
		b.do(chromedp.KeyEvent([]string{"a", "r", "e"}[random.IntN(3)]))
		if got := b.subject(); got != about {
			t.Fatalf("after %q the dialog is about %s, not %s", pressed, got, about)
		}
		b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent("dialog.actiondialog"))
	}
	for _, id := range ids {
		if r := request(t, s, id); r.Decision != nil {
			t.Errorf("%s is decided: %+v", id, r.Decision)
		}
	}
}
