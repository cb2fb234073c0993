package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// scrollDown scrolls to the end, one half of the screen at a time.
const scrollDown = `(async () => {
	for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
		scrollTo(0, y);
		await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
	}
	return true;
})()`

// A decision says that everything was on the screen only if everything was.
func TestRequest_DecisionSaysHowMuchWasOnTheScreen(t *testing.T) {
	s := openServer(t)
	b := openTab(t, s, "ann", desk)
	long := strings.Repeat(`the parcel was damaged\n`, 150)
	for name, c := range map[string]struct{ note, before, want string }{
		"a short request":        {`damaged`, `true`, "all"},
		"a long one":             {long, `document.querySelectorAll("fermata-request details").forEach((d) => d.open = true) ?? true`, "part"},
		"a long one, to its end": {long, `document.querySelectorAll("fermata-request details").forEach((d) => d.open = true) ?? ` + scrollDown, "all"},
		"a jump over the middle": {long, `document.querySelectorAll("fermata-request details").forEach((d) => d.open = true) ?? (scrollTo(0, 1e6), true)`, "part"},
	} {
		key := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
		id := ask(t, s, "inproc:test-refund", key, `{"order":17,"payment":1,"amount":"120.00","note":"`+c.note+`"}`)
		b.open("/requests/" + id)
		eval[bool](b, c.before)
		b.do(chromedp.KeyEvent("a"), chromedp.WaitVisible("dialog.actiondialog form"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
		b.waitText("Approved by ann")
		shown := request(t, s, id).Activity.Renderings
		if last := shown[len(shown)-1]; last.Visible != c.want || last.Channel != "web" {
			t.Errorf("%s: %+v", name, shown)
		}
	}
}
