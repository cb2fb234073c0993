package page

import (
	"net/http"
	"slices"

	"github.com/fermata-go/fermata/internal/language"
)

// languageMaxAge is how long a browser keeps the chosen language, in seconds: a year.
const languageMaxAge = 365 * 24 * 60 * 60

// SetLanguage stores the language of the pages in the browser, as the time zone is. Any other text
// leaves it to the browser. The cookie has the same name with and without TLS, so that the sign-in
// page finds it.
func (v *Visit) SetLanguage(code string) {
	cookie := v.cookie(language.Cookie, code, languageMaxAge)
	cookie.Name = language.Cookie
	if !slices.Contains(language.All, code) {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(v.W, cookie)
}
