package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/server/authn"
)

// A reply in doubt sends no mail, in the language of the browser.
func TestChat_DoubtIsNotAYes(t *testing.T) {
	s := openChat(t)
	for language, test := range map[string]struct{ ask, clear, doubts string }{
		"en": {"write to Tom about prices", "yes", "yes?|ok?|yes???|\"yes\"|~~yes~~|👎 yes|y\u0336e\u0336s\u0336|yes？|yes no|not yes|yes but tomorrow|if it is cheap, yes|> yes"},
		"de": {"schreib an Tom über Preise", "Ja!", "ja?|„ja“|ja, aber morgen|nein, ja|ja…"},
		"fr": {"écris à Tom au sujet de la facture", "Oui\u00a0!", "oui ?|« oui »|oui mais demain|si c'est pas cher, oui"},
		"es": {"escribe a Tom sobre precios", "¡Sí!", "¿sí?|si?|\"sí\"|sí, pero mañana"},
	} {
		b := s.SignIn("ada", authn.RoleUser)
		b.Language = language
		for doubt := range strings.SplitSeq(test.doubts, "|") {
			path := begin(t, b, test.ask)
			b.Post(path, "text", doubt)
			if got := b.Get(path); !strings.Contains(got.Body, `value="q1:yes"`) || strings.Contains(got.Body, "on its way") {
				t.Errorf("%s: %q\n%s", language, doubt, got.Body)
			}
		}
		path := begin(t, b, test.ask)
		b.Post(path, "text", test.clear)
		want(t, b.Get(path), http.StatusOK, "on its way to Tom Becker")
	}
}

func TestChat_UnknownNameAndDayAreAskedAbout(t *testing.T) {
	b := openChat(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "write to bob@other.com about prices") // the model does not find the subject
	both := b.Get(path)
	want(t, both, http.StatusOK, "I do not know bob. Who do you mean?", `name="v/q1"`, "What is the mail about?", `name="v/q2"`)
	submit(b, path, both, "answers", "1", "v/q1", "Tom", "v/q2", "prices")
	b.Post(path, "text", "yes")
	want(t, b.Get(path), http.StatusOK, "“prices” is on its way to Tom Becker")
	path = begin(t, b, "write to bob about prices")
	want(t, b.Get(path), http.StatusOK, "I do not know bob. Who do you mean?", `value="q1:other"`)

	path = begin(t, b, "meet Tom on 2027-02-30")
	page := b.Get(path)
	want(t, page, http.StatusOK, "“2027-02-30” is not a date. When do you meet?")
	page = b.Follow(submit(b, path, page, "answers", "1", "v/q1/day", "2027-02-31"))
	want(t, page, http.StatusOK, "“2027-02-31” is not a date. Write dates as 2027-05-31.")
	want(t, b.Follow(submit(b, path, page, "answers", "1", "v/q1/day", "2027-02-28")), http.StatusOK, "In your calendar: Tom Becker, 2027-02-28")
}

// The page has buttons to correct an answer. The mail has gone: the user hears to whom, and can
// have another one sent.
func TestChat_CorrectionSaysWhatHasHappened(t *testing.T) {
	b := openChat(t).SignIn("ada", authn.RoleUser)
	path := begin(t, b, "write to Anna about lunch")
	page := b.Follow(submit(b, path, b.Get(path), "choice", "q1:anna-m"))
	want(t, page, http.StatusOK, "on its way to Anna Meier", "Correct the answer", "Your answer: Anna Meier (legal)", `value="q1:anna-s"`)
	if strings.Contains(page.Body, `value="q1:anna-m"`) {
		t.Error("the answer is offered as its own correction")
	}
	corrected := b.Follow(submit(b, path, page, "choice", "q1:anna-s"))
	want(t, corrected, http.StatusOK, "Corrected: Anna Schmidt (sales). But the task has already ended with Anna Meier (legal)", "That stays as it is.", "You asked: “write to Anna about lunch”", "Your answer: Anna Schmidt (sales)")
	want(t, submit(b, path, page, "choice", "q1:anna-s"), http.StatusUnprocessableEntity, "The questions have changed")
	want(t, b.Follow(submit(b, path, corrected, "choice", "q2:yes")), http.StatusOK, "on its way to Anna Schmidt")
}
