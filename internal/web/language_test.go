package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// The language of all pages is that of the browser, until the person chooses another one.
func TestLanguage_BrowserDecidesUntilPersonChooses(t *testing.T) {
	s := open(t, func(*webtest.Config) {})
	b := s.SignIn("ann")
	shows := func(path, lang string) {
		t.Helper()
		got, other := b.Get(path), map[string]string{"de": "en", "en": "de"}[lang]
		if !strings.Contains(got.Body, `<html lang="`+lang+`"`) {
			t.Errorf("%s is not in %s", path, lang)
		}
		if path == "/inbox" && (!strings.Contains(got.Body, web.Languages()[lang]["inbox.title"]) || strings.Contains(got.Body, web.Languages()[other]["nav.signout"])) {
			t.Errorf("%s does not have the texts of %s", path, lang)
		}
	}
	pages := []string{"/inbox", "/me", "/nowhere", "/signin?bye", "/signin/invitation?token=unknown"}
	for _, path := range pages {
		shows(path, "en")
	}
	b.Language = "de-CH,en;q=0.4"
	for _, path := range pages {
		shows(path, "de")
	}
	choose := func(code string) { want(t, b.Follow(b.Post("/me/language", "language", code)), http.StatusOK) }
	choose("en")
	for _, path := range pages {
		shows(path, "en")
	}
	choose("")
	shows("/inbox", "de")
}

// Dates and relative times are written as people of the language write them.
func TestLanguage_TimesFollowIt(t *testing.T) {
	s := open(t, func(*webtest.Config) {})
	ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	b.Language = "de"
	got := b.Get("/runs").Body
	for _, text := range []string{">vor ", " Sek.<", `title="` + time.Now().UTC().Format("02.01.2006, ")} {
		if !strings.Contains(got, text) {
			t.Errorf("no %q in %s", text, got)
		}
	}
}

// The assistant frames its questions in the language of the page. The questions of the sample are
// in English, and so is what is added to them.
func TestLanguage_ConversationHasThatOfPage(t *testing.T) {
	s := openChat(t)
	b := s.SignIn("ann")
	b.Language = "de"
	id := strings.TrimPrefix(begin(t, b, "schreib an Anna über Tee"), "/chat/")
	record, err := s.Dialog.Whole(t.Context(), webtest.Account, id)
	if err != nil || record.Language != "de" {
		t.Fatalf("language %q, %v", record.Language, err)
	}
	if got := b.Get("/chat/" + id).Body; !strings.Contains(got, "Which Anna do you mean?") || !strings.Contains(got, "Someone else") || strings.Contains(got, "Jemand anderes") || !strings.Contains(got, "Aufgabe abbrechen") {
		t.Error(got)
	}
}

// A person who only talks with assistants has a page on a server without one.
func TestHome_UserWithoutAssistantSeesTheProfile(t *testing.T) {
	b := open(t).SignIn("ada", authn.RoleUser)
	got := b.Get("/")
	if got.Header.Get("Location") != "/me" {
		t.Fatalf("%d %v", got.Status, got.Header)
	}
	want(t, b.Follow(got), http.StatusOK, "ada")
}
