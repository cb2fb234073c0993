package language_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-go/fermata/internal/language"
)

func TestOf_ChoiceThenBrowserThenEnglish(t *testing.T) {
	for _, c := range []struct{ cookie, header, want, conversation string }{
		{"", "", "en", ""},
		{"", "de", "de", "de"},
		{"", "de-AT,de;q=0.9,en;q=0.5", "de", "de"},
		{"", "fr;q=0.9, de;q=0.8, en;q=0.5", "de", "fr"},
		{"", "en-GB;q=0.4, de;q=0.8", "de", "de"},
		{"", "de;q=0, fr", "en", "fr"},
		{"", "de;q=x, en;q=0.1", "en", "en"},
		{"", "*;q=0.5, den", "en", ""},
		{"", "es-MX", "en", "es"},
		{"en", "de", "en", "en"},
		{"de", "fr", "de", "de"},
		{"xx", "de", "de", "de"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if c.header != "" {
			r.Header.Set("Accept-Language", c.header)
		}
		if c.cookie != "" {
			r.AddCookie(&http.Cookie{Name: language.Cookie, Value: c.cookie})
		}
		if got := language.Of(r); got != c.want {
			t.Errorf("cookie %q, header %q: %q, want %q", c.cookie, c.header, got, c.want)
		}
		if got := language.OfConversation(r); got != c.conversation {
			t.Errorf("cookie %q, header %q: conversation %q, want %q", c.cookie, c.header, got, c.conversation)
		}
	}
}
